// SPDX-License-Identifier: Apache-2.0

package metrics

// Kinds whose deletion is watched.
const (
	// KindConfig: an OpenshiftAssistedConfig; of the bootstrap manager.
	KindConfig = "OpenshiftAssistedConfig"
	// KindControlPlane: an OpenshiftAssistedControlPlane; of the control plane manager.
	KindControlPlane = "OpenshiftAssistedControlPlane"
	// KindMachine: a Machine whose configuration is an OpenshiftAssistedConfig; of the bootstrap manager.
	KindMachine = "Machine"
)

// Steps of a deletion.
const (
	// StepMachine: a config waits for its Machine.
	StepMachine = "machine"
	// StepAgent: a config waits for the Agent of its Machine.
	StepAgent = "agent"
	// StepInfraEnv: a config gives up its InfraEnv.
	StepInfraEnv = "infra_env"
	// StepPreDrainHook: a Machine waits in a pre-drain hook.
	StepPreDrainHook = "pre_drain_hook"
	// StepDrain: the Node of a Machine is drained.
	StepDrain = "drain"
	// StepVolumes: a Machine waits until the volumes of its Node are detached.
	StepVolumes = "volumes"
	// StepPreTerminateHook: a Machine waits in a pre-terminate hook, for its Agent or its member of etcd.
	StepPreTerminateHook = "pre_terminate_hook"
	// StepInfrastructure: a Machine waits for its infrastructure machine, and so for its host.
	StepInfrastructure = "infrastructure"
	// StepBootstrap: a Machine waits for its config.
	StepBootstrap = "bootstrap"
	// StepNode: the Node of a Machine is deleted.
	StepNode = "node"
	// StepWorkers: a control plane waits for workers.
	StepWorkers = "workers"
	// StepOrphaning: a control plane waits for garbage collection to take its objects from it.
	StepOrphaning = "orphaning"
	// StepMachines: a control plane waits for its Machines.
	StepMachines = "machines"
	// StepOrphans: a control plane waits for Machines that were orphaned on purpose.
	StepOrphans = "orphans"
	// StepInstall: a control plane waits for the objects of its installation.
	StepInstall = "install"
	// StepOther: another step, or none is told yet.
	StepOther = "other"
)

// ConfigSteps, MachineSteps and ControlPlaneSteps are the steps of the deletion of each kind.
var (
	ConfigSteps  = []string{StepMachine, StepAgent, StepInfraEnv, StepOther}
	MachineSteps = []string{
		StepPreDrainHook, StepDrain, StepVolumes, StepPreTerminateHook, StepInfrastructure, StepBootstrap, StepNode, StepOther,
	}
	ControlPlaneSteps = []string{StepWorkers, StepOrphaning, StepMachines, StepOrphans, StepInstall, StepOther}
)

// DeletionAgeSeconds is a metric of both managers, each for its kinds.
var DeletionAgeSeconds = Definition{
	Name: "openshift_assisted_deletion_age_seconds", Kind: Gauge,
	Help: "Seconds since the deletion of the object that has been deleted longest in a step.",
	Labels: []Label{
		{Name: "kind", Constants: "Kind", Values: []string{KindConfig, KindControlPlane, KindMachine}},
		{Name: "step", Constants: "Step", Values: []string{
			StepMachine, StepAgent, StepInfraEnv, StepPreDrainHook, StepDrain, StepVolumes, StepPreTerminateHook, StepInfrastructure,
			StepBootstrap, StepNode, StepWorkers, StepOrphaning, StepMachines, StepOrphans, StepInstall, StepOther,
		}},
	},
	Source: "metadata.deletionTimestamp; the step is the reason of the condition Deleting of the config, the control plane or the Machine",
	Counts: "from the cache, at every scrape; always one series for each step that the kind has, 0 when nothing is in it",
}

// Bootstrap are the metrics of the bootstrap manager.
var Bootstrap = []Definition{
	MachinePhaseSeconds, Hosts, HostsOldestSeconds, UnknownAgents, AgentsRefusedTotal, ImageReadySeconds, DeletionAgeSeconds,
}

// ControlPlane are the metrics of the control plane manager.
var ControlPlane = []Definition{
	InstallsTotal, InstallSeconds, UpgradesTotal, UpgradeSeconds, UpgradesStalled, ReplacementsTotal, EtcdMembers, WorkloadUnreachable,
	WorkloadUnreachableOldestSeconds, ReleaseResolveSeconds, DeletionAgeSeconds, CredentialExpirySeconds,
}
