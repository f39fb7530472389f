// SPDX-License-Identifier: Apache-2.0

package metrics

// Phases of a Machine, in the order in which it reaches them.
const (
	// PhaseMedia: the bootstrap data Secret is published, so that Metal3 may choose a host (status.initialization.dataSecretCreated).
	PhaseMedia = "media"
	// PhaseHostChosen: the Machine has a BareMetalHost (HostHealthy tells of one).
	PhaseHostChosen = "host_chosen"
	// PhaseBooted: the host is provisioned, so its Agent is waited for (HostRecognized has left WaitingForHost).
	PhaseBooted = "booted"
	// PhaseRecognised: an Agent is recognised as the host and claimed (HostRecognized is True, reason Recognized).
	PhaseRecognised = "recognised"
	// PhaseBound: the Agent is given to the cluster (the config has the annotation bootstrap.cluster.x-k8s.io/installation-disk).
	PhaseBound = "bound"
	// PhaseInstalling: the host is being installed (AgentInstalled has reason Installing).
	PhaseInstalling = "installing"
	// PhaseInstalled: the host is installed (AgentInstalled is True, reason Installed).
	PhaseInstalled = "installed"
	// PhaseNode: the Machine has a Node (Machine.status.nodeRef).
	PhaseNode = "node"
	// PhaseReady: the Machine is ready for the first time since it has a Node (condition Ready of the Machine).
	PhaseReady = "ready"
)

// Roles of a Machine.
const (
	// RoleControlPlane: a Machine of the control plane.
	RoleControlPlane = "control_plane"
	// RoleWorker: any other Machine, an arbiter too.
	RoleWorker = "worker"
)

// Days of a Machine.
const (
	// DayOne: the Machine's host is of the first installation of the cluster, or may still become so.
	DayOne = "1"
	// DayTwo: it joins a cluster whose first installation is closed or complete without it, also when its host has taken part for another
	// Machine.
	DayTwo = "2"
)

// States of a host.
const (
	// StateWaitingForHost: no BareMetalHost is associated or provisioned yet.
	StateWaitingForHost = "waiting_for_host"
	// StateWaitingForAgent: the host was booted and has not registered, in time or not, or has lost its Agent.
	StateWaitingForAgent = "waiting_for_agent"
	// StateNotRecognised: Agents registered, and none of them is the host, or the one that is it belongs to another Machine.
	StateNotRecognised = "not_recognised"
	// StateSeveralMatch: several Agents match the host, or several hosts the Agent.
	StateSeveralMatch = "several_match"
	// StateDuplicate: two hosts have one serial number, or register as one Agent.
	StateDuplicate = "duplicate"
	// StateValidationsFailing: checks of assisted-service fail.
	StateValidationsFailing = "validations_failing"
	// StateReady: the host is recognised and nothing is wrong with it: it is being claimed, discovered or bound, or waits for the cluster.
	StateReady = "ready"
	// StateInstalling: the host is being installed.
	StateInstalling = "installing"
	// StateNeedsAttention: somebody has to act: what is asked for the host cannot be given to it, or not all that is needed can be read.
	StateNeedsAttention = "needs_attention"
	// StateFailed: the installation of the host failed.
	StateFailed = "failed"
	// StateDisconnected: assisted-service has not heard from the host for some time.
	StateDisconnected = "disconnected"
	// StateInstalled: the host is installed, or its Node has joined.
	StateInstalled = "installed"
)

// HostStates are all states of a host.
var HostStates = []string{
	StateWaitingForHost, StateWaitingForAgent, StateNotRecognised, StateSeveralMatch, StateDuplicate, StateValidationsFailing, StateReady,
	StateInstalling, StateNeedsAttention, StateFailed, StateDisconnected, StateInstalled,
}

// Reasons for which an Agent is refused.
const (
	// RefusedNotRecognised: no BareMetalHost has its MAC addresses and its serial number; the Agent gets a note.
	RefusedNotRecognised = "not_recognised"
	// RefusedSeveralAgents: more than one Agent matches the host of a Machine (HostRecognized, reason SeveralAgentsMatch).
	RefusedSeveralAgents = "several_agents"
	// RefusedSeveralHosts: the Agent matches more than one BareMetalHost (HostRecognized, reason SeveralHostsMatch).
	RefusedSeveralHosts = "several_hosts"
	// RefusedDuplicateSerial: two hosts have its serial number (HostRecognized, reason DuplicateSerialNumber).
	RefusedDuplicateSerial = "duplicate_serial_number"
	// RefusedClaimedByOther: the Agent is claimed for another living Machine (HostRecognized, reason AgentClaimedByOther).
	RefusedClaimedByOther = "claimed_by_other"
)

// RefusedReasons are all reasons for which an Agent is refused.
var RefusedReasons = []string{
	RefusedNotRecognised, RefusedSeveralAgents, RefusedSeveralHosts, RefusedDuplicateSerial, RefusedClaimedByOther,
}

// The metrics of the bootstrap manager.
var (
	MachinePhaseSeconds = Definition{
		Name: "openshift_assisted_machine_phase_seconds", Kind: Histogram,
		Help: "Seconds from the creation of a Machine until it has reached a phase.",
		Labels: []Label{
			{Name: "phase", Constants: "Phase", Values: []string{
				PhaseMedia, PhaseHostChosen, PhaseBooted, PhaseRecognised, PhaseBound, PhaseInstalling, PhaseInstalled, PhaseNode, PhaseReady,
			}},
			{Name: "role", Constants: "Role", Values: []string{RoleControlPlane, RoleWorker}},
			{Name: "day", Constants: "Day", Values: []string{DayOne, DayTwo}},
		},
		Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200},
		Source: "conditions HostHealthy, HostRecognized and AgentInstalled and status.initialization of the OpenshiftAssistedConfig; " +
			"status.nodeRef and condition Ready of the Machine",
		Counts: "when a pass has written that the phase is reached; node and ready when the Machine changes to it, ready by the manager " +
			"that has counted the Node. The mean of a phase less the mean of the one before is the mean time between them",
	}
	Hosts = Definition{
		Name: "openshift_assisted_hosts", Kind: Gauge, Help: "Hosts of Machines, by state.",
		Labels: []Label{{Name: "state", Constants: "State", Values: HostStates}},
		Source: "reasons of the conditions HostRecognized and AgentInstalled of every OpenshiftAssistedConfig that is not being deleted",
		Counts: "from the cache, at every scrape; always one series a state",
	}
	HostsOldestSeconds = Definition{
		Name: "openshift_assisted_hosts_oldest_seconds", Kind: Gauge,
		Help:   "Seconds for which the host that is in a state longest has been in it; of installing: in its stage.",
		Labels: []Label{{Name: "state", Constants: "State", Values: HostStates}},
		Source: "waiting_for_host: creation of the config; waiting_for_agent, not_recognised, several_match and duplicate: the end of the " +
			"BareMetalHost's provisioning, or the loss of the Agent; ready: since when HostRecognized is True, or the manager saw " +
			"the host recognised; installing: " +
			"status.progress.stageStartTime of the Agent; validations_failing and disconnected: since when the Agent's condition Validated or " +
			"Connected is False; installed: since when AgentInstalled is True; other states, and an Agent that does not tell: when the manager " +
			"saw the host change to the state",
		Counts: "from the cache, at every scrape; 0 for a state without hosts. A manager that begins to act has not seen when a host came " +
			"into a state: where no object tells, the host counts since its recognition then",
	}
	UnknownAgents = Definition{
		Name: "openshift_assisted_unknown_agents", Kind: Gauge,
		Help:   "Agents that are claimed for no Machine and in which no host is recognised.",
		Source: "annotation bootstrap.cluster.x-k8s.io/not-recognized of Agents without bootstrap.cluster.x-k8s.io/claimed-by",
		Counts: "from the cache, at every scrape",
	}
	AgentsRefusedTotal = Definition{
		Name: "openshift_assisted_agents_refused_total", Kind: Counter, Help: "Agents that were refused as the host of a Machine.",
		Labels: []Label{{Name: "reason", Constants: "Refused", Values: RefusedReasons}},
		Source: "reasons of the condition HostRecognized; annotation bootstrap.cluster.x-k8s.io/not-recognized of Agents",
		Counts: "when a pass has written the reason and the one before was none of these; not_recognised when an Agent gets the annotation",
	}
	ImageReadySeconds = Definition{
		Name: "openshift_assisted_image_ready_seconds", Kind: Histogram,
		Help:    "Seconds until a config's InfraEnv has an image, from the creation of the later one of both.",
		Buckets: []float64{1, 5, 10, 20, 30, 60, 120, 300, 600, 1800},
		Source:  "condition DiscoveryImageReady of the OpenshiftAssistedConfig, reason Ready",
		Counts:  "when a pass has written that it is True, as long as no boot media were published for the config",
	}
)
