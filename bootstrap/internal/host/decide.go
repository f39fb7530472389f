// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/fact"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// maxChecks bounds how many failing checks a message names.
const maxChecks = 3

// decision is what a pass does, in this order, and what the conditions say afterwards.
type decision struct {
	// hook is true when the Machine has to get its pre-terminate hook.
	hook bool
	// leftover is an Agent of an earlier life of the host, which is deleted; nil when there is none.
	leftover *assisted.Agent
	// claim is an Agent to claim; nil when there is nothing to claim.
	claim *assisted.Agent
	// record is the claimed Agent's name to record on the config; empty when it is recorded.
	record string
	// bind is an Agent to bind; nil when there is none.
	bind *binding
	// approve is a bound Agent that gets its disk and is approved; nil when there is none.
	approve *assisted.Agent
	// disk is what the config records of the choice of the disk; empty when it is recorded.
	disk string
	// nudge is an Agent whose refused bind is tried again, and the value that tells this try from the last one.
	nudge      *assisted.Agent
	nudgeValue string
	// reboot is true when the host is power-cycled, because its Agent was lost before it was installed.
	reboot bool

	healthy    fact.Fact
	recognized fact.Fact
	installed  fact.Fact
}

// binding is what the one patch of an Agent sets, always all of it (ASSISTED fact 3, 8.8 rule 5), but for a chosen disk, which follows together
// with the approval.
type binding struct {
	agent    *assisted.Agent
	role     string
	hostname string
	labels   map[string]string
	// pool is the custom MachineConfigPool of a worker; empty is that of its role.
	pool    string
	cluster assisted.ClusterReference
	// ignition and installerArgs are what spec.installation asks for, and what the provider adds.
	ignition      string
	installerArgs string
	// disk is the ID of the disk that root device hints chose; empty when there are none.
	disk string
	// fencing is the name of the Secret by which the host is powered off; empty in clusters that do not need it.
	fencing string
}

// decide says what the pass does for a Machine that lives. The hook comes before everything, so that the host is never freed while its
// Agent exists (DESIGN D19).
func decide(s *scope) decision {
	d := decision{hook: s.machine.Annotations[bootstrapv1.AgentDeletionHook] == ""}
	d.healthy = hostFact(s)
	if joined(s) && !s.hasClaimed() {
		d.recognized, d.installed = fact.Done(bootstrapv1.NodeJoinedReason), fact.Done(bootstrapv1.NodeJoinedReason)
		return d
	}
	if len(s.missingCRDs) > 0 {
		d.recognized = fact.Waiting(bootstrapv1.WaitingForCRDsReason, "CRDs %s are not served: install hive, assisted-service and Metal3", strings.Join(s.missingCRDs, ", "))
		d.installed = fact.Waiting(bootstrapv1.WaitingForRecognitionReason, "no host is recognised yet")
		return d
	}
	agent := decideIdentity(s, &d)
	if agent == nil {
		d.installed = fact.Waiting(bootstrapv1.WaitingForRecognitionReason, "no host is recognised yet")
		return d
	}
	d.installed = decideInstallation(s, &d, agent)
	return d
}

// joined reports whether the Machine's host is a Node. The provider ID tells it where status does not, as after a move, which leaves status and
// Agents behind (CONTRACT CTL-42, DESIGN D22). Metal3 sets it when the Node exists, other infrastructure before its host registers.
func joined(s *scope) bool {
	return s.machine.Status.NodeRef.IsDefined() || s.machine.Spec.ProviderID != "" && metal3.IsMachineRef(s.machine.Spec.InfrastructureRef)
}

// hostFact says whether the Machine's BareMetalHost is well.
func hostFact(s *scope) fact.Fact {
	if s.host != nil {
		if text := metal3.Error(s.host); text != "" {
			return fact.Waiting(bootstrapv1.HostErrorReason, "%s", text)
		}
		return fact.Done(bootstrapv1.HostHealthyReason)
	}
	if s.infraMachine == nil {
		return fact.Done(bootstrapv1.HostNotAssociatedReason)
	}
	if key, ok := metal3.HostKey(s.infraMachine); ok {
		return fact.Waiting(bootstrapv1.HostMissingReason, "BareMetalHost %s of Metal3Machine %s does not exist or is used by another: delete the Machine to get a new host", key.Name, s.infraMachine.GetName())
	}
	return fact.Done(bootstrapv1.HostNotAssociatedReason)
}

// decideIdentity recognises the Machine's host and claims it. It returns the Agent once it is claimed and the claim is recorded.
func decideIdentity(s *scope, d *decision) *assisted.Agent {
	verdict := recognize(s)
	recorded := s.config.Annotations[bootstrapv1.AgentAnnotation]
	switch {
	case verdict.Agent == nil && recorded != "" && !slices.ContainsFunc(s.agents, func(a assisted.Agent) bool { return a.Name == recorded }):
		d.recognized = lostFact(s, d, recorded)
		return nil
	case verdict.Agent == nil:
		d.recognized = fact.Waiting(verdict.Reason, "%s", verdict.Message)
		return nil
	}
	agent := verdict.Agent
	claim := agent.Annotations[bootstrapv1.ClaimAnnotation]
	claimed := claim == s.claim()
	switch {
	case !agent.DeletionTimestamp.IsZero():
		d.recognized = fact.Waiting(bootstrapv1.WaitingForAgentReason, "Agent %s is being deleted", agent.Name)
		return nil
	case !claimed && (claim != "" || agent.CreationTimestamp.Before(&s.machine.CreationTimestamp)):
		// It was registered before this Machine existed, or for one that vanished: nothing says that the host still runs it (DESIGN D19).
		d.leftover = agent
		d.recognized = fact.Waiting(bootstrapv1.WaitingForAgentReason, "Agent %s is of an earlier life of the host and is being deleted", agent.Name)
		return nil
	case d.hook:
		d.recognized = fact.Waiting(bootstrapv1.WaitingForAgentReason, "Agent %s is recognised; Machine %s gets its pre-terminate hook first", agent.Name, s.machine.Name)
		return nil
	case !claimed:
		d.claim, d.record = agent, agent.Name
		d.recognized = fact.Done(bootstrapv1.HostRecognizedReason)
		return nil
	}
	if recorded != agent.Name {
		d.record = agent.Name
	}
	d.recognized = fact.Done(bootstrapv1.HostRecognizedReason)
	return agent
}

// recognize applies the rule of spec.hostIdentity.
func recognize(s *scope) identity.Verdict {
	if s.config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv {
		return recognizeByInfraEnv(s)
	}
	if s.host == nil {
		return identity.Verdict{Reason: bootstrapv1.WaitingForHostReason, Message: "no BareMetalHost is associated with the Machine yet"}
	}
	return identity.Recognize(identity.Request{Host: s.host, Hosts: s.hosts, Agents: s.agents, Claim: s.claim(), LivingClaims: s.livingClaims})
}

// recognizeByInfraEnv takes the only Agent of the config's own InfraEnv (DESIGN D6).
func recognizeByInfraEnv(s *scope) identity.Verdict {
	switch len(s.agents) {
	case 0:
		return identity.Verdict{Reason: bootstrapv1.WaitingForAgentReason, Message: "no Agent has registered through the Machine's own InfraEnv"}
	case 1:
		agent := &s.agents[0]
		if claim := agent.Annotations[bootstrapv1.ClaimAnnotation]; slices.Contains(s.livingClaims, claim) {
			other, _, _ := agent.ClaimedFor()
			return identity.Verdict{Reason: bootstrapv1.AgentClaimedByOtherReason, Message: fmt.Sprintf(
				"Agent %s registered through the Machine's own InfraEnv and is claimed for Machine %s: its host booted the wrong image", agent.Name, other)}
		}
		return identity.Verdict{Agent: agent}
	default:
		return identity.Verdict{Reason: bootstrapv1.SeveralAgentsReason, Message: fmt.Sprintf(
			"%d Agents registered through the Machine's own InfraEnv: none is approved; find the host that does not belong there and delete its Agent", len(s.agents))}
	}
}

// lostFact says that the claimed Agent of a host without a Node is gone. The host is frozen until it is rebooted (ASSISTED fact 11), so it is
// power-cycled; one that takes part in a running installation is not, because the installation fails without it anyway.
func lostFact(s *scope, d *decision, name string) fact.Fact {
	if s.host == nil || takesPart(s, name) {
		return fact.Waiting(bootstrapv1.AgentLostReason, "Agent %s does not exist any more: delete the Machine to install the host anew", name)
	}
	d.reboot = true
	return fact.Waiting(bootstrapv1.AgentLostReason, "Agent %s does not exist any more: BareMetalHost %s is rebooted to register again", name, s.host.Name)
}

func takesPart(s *scope, agentName string) bool {
	if s.install == nil {
		return false
	}
	switch assisted.PhaseOf(s.install) {
	case assisted.PhasePreparing, assisted.PhaseInstalling, assisted.PhaseFinalizing:
		names, _ := assisted.DayOneAgents(s.install)
		return slices.Contains(names, agentName)
	default:
		return false
	}
}

// decideInstallation binds the claimed Agent when the cluster takes hosts, and says how far its installation is.
func decideInstallation(s *scope, d *decision, agent *assisted.Agent) fact.Fact {
	role := roleOf(s.machine)
	gate := assisted.GateOf(s.install, role)
	if agent.Spec.ClusterDeploymentName == nil {
		return decideBind(s, d, agent, role, gate)
	}
	if s.install != nil && !agent.BoundTo(s.install.Namespace, s.install.Spec.ClusterDeploymentRef.Name) {
		return fact.Waiting(bootstrapv1.WaitingForClusterReason, "Agent %s is bound to ClusterDeployment %s, not to %s: clear its spec.clusterDeploymentName",
			agent.Name, agent.Spec.ClusterDeploymentName.Name, s.install.Spec.ClusterDeploymentRef.Name)
	}
	if agent.BindRefused() && gate != assisted.GateClosed {
		value := fmt.Sprintf("%s/%s", s.install.UID, assisted.PhaseOf(s.install))
		if agent.Annotations[bootstrapv1.BindNudgeAnnotation] != value {
			d.nudge, d.nudgeValue = agent, value
		}
	}
	recordDisk(s, d, agent.Annotations[bootstrapv1.InstallationDiskAnnotation])
	if f, owed := decideDisk(d, agent); owed {
		return f
	}
	return progressFact(agent)
}

func decideBind(s *scope, d *decision, agent *assisted.Agent, role string, gate assisted.Gate) fact.Fact {
	name := hostname(s)
	problems := validation.HostnameProblems(name)
	fencing, unfenced := fencingSecret(s, role)
	switch {
	case len(problems) > 0:
		return fact.Waiting(bootstrapv1.HostnameInvalidReason, "%s cannot be the name of a Node: %s; set spec.nodeRegistration.name of the template to %s, or rename the BareMetalHost, and delete Machine %s",
			name, strings.Join(problems, "; "), bootstrapv1.NodeNameMachine, s.machine.Name)
	case !rightArchitecture(s, agent):
		return fact.Waiting(bootstrapv1.ArchitectureMismatchReason, "Agent %s reports architecture %s, and spec.cpuArchitecture is %s: correct the template, or the labels by which its Metal3MachineTemplate chooses hosts, and delete Machine %s",
			agent.Name, agent.Status.Inventory.CPU.Architecture, s.config.Spec.Architecture(), s.machine.Name)
	case gate == assisted.GateClosed:
		return closedFact(s, agent, role)
	case gate != assisted.GateDayTwo && machineConfigPool(s, role) != "":
		// Until the cluster is installed, assisted-service would give the host to pool worker without a word.
		return fact.Waiting(bootstrapv1.WaitingForClusterReason, "Agent %s waits, registered and unbound, until the cluster is installed: it joins with MachineConfigPool %s",
			agent.Name, machineConfigPool(s, role))
	case unfenced:
		return noFencingFact(s, agent)
	case !agent.MayBeBound():
		return discoveringFact(agent)
	}
	merged, args, err := installation(s.config)
	if err != nil {
		return fact.Waiting(bootstrapv1.InstallationInvalidReason, "%s", err.Error())
	}
	choice := chooseDisk(s, agent)
	if choice.Reason != "" {
		return fact.Waiting(choice.Reason, "%s", choice.Message)
	}
	recordDisk(s, d, choice.ID)
	ref := s.install.Spec.ClusterDeploymentRef.Name
	d.bind = &binding{
		agent:    agent,
		role:     role,
		hostname: name,
		labels:   nodeLabels(s),
		pool:     machineConfigPool(s, role),
		ignition: merged, installerArgs: args,
		cluster: assisted.ClusterReference{Namespace: s.install.Namespace, Name: ref},
		disk:    choice.ID,
		fencing: fencing,
	}
	return fact.Waiting(bootstrapv1.AgentBindingReason, "Agent %s is being bound to ClusterDeployment %s", agent.Name, ref)
}

// rightArchitecture reports whether a host has the architecture that its config asks for, as far as the host has told yet.
func rightArchitecture(s *scope, agent *assisted.Agent) bool {
	reported := agent.Status.Inventory.CPU.Architecture
	return reported == "" || bootstrapv1.CPUArchitectureOf(reported) == s.config.Spec.Architecture()
}

// hostname is the name that the Node will have (DESIGN D7).
func hostname(s *scope) string {
	if s.config.Spec.NodeRegistration.Name == bootstrapv1.NodeNameBareMetalHost && s.host != nil {
		return s.host.Name
	}
	return s.machine.Name
}

// machineConfigPool is the custom pool of a worker. Control-plane hosts have none, which admission sees to for those of a control plane.
func machineConfigPool(s *scope, role string) string {
	if role != assisted.RoleWorker {
		return ""
	}
	return s.config.Spec.NodeRegistration.MachineConfigPool
}

// nodeLabels are the labels of the Node: the user's, and the one by which Metal3 finds it (METAL3 M3-34).
func nodeLabels(s *scope) map[string]string {
	labels := map[string]string{}
	for _, label := range s.config.Spec.NodeRegistration.Labels {
		labels[label.Key] = ""
		if label.Value != nil {
			labels[label.Key] = *label.Value
		}
	}
	if s.host != nil {
		labels[metal3.NodeUIDLabel] = string(s.host.UID)
	}
	return labels
}

// discoveringFact says why a claimed, unbound Agent cannot be bound yet.
func discoveringFact(agent *assisted.Agent) fact.Fact {
	if f, ok := problemFact(agent); ok {
		return f
	}
	return fact.Waiting(bootstrapv1.AgentDiscoveringReason, "Agent %s: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
}

// progressFact says how far the installation of a bound Agent is.
func progressFact(agent *assisted.Agent) fact.Fact {
	switch {
	case agent.Installed():
		return fact.Done(bootstrapv1.AgentInstalledReason)
	case agent.Failed():
		return fact.Waiting(bootstrapv1.AgentInstallationFailedReason, "Agent %s: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
	case agent.Status.DebugInfo.State == assisted.AgentStatePendingUserAction:
		return fact.Waiting(bootstrapv1.AgentNeedsAttentionReason, "Agent %s: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
	case agent.Installing():
		return fact.Waiting(bootstrapv1.AgentInstallingReason, "Agent %s: %s", agent.Name, agent.ProgressText())
	case agent.Refused():
		return fact.Waiting(bootstrapv1.AgentNeedsAttentionReason, "Agent %s: assisted-service refuses what the host is given: %s",
			agent.Name, agent.Condition(assisted.ConditionSpecSynced).Message)
	case agent.ReadyToInstall():
		return fact.Waiting(bootstrapv1.AgentReadyReason, "Agent %s is ready and waits for the installation to begin", agent.Name)
	}
	if f, ok := problemFact(agent); ok {
		return f
	}
	return fact.Waiting(bootstrapv1.AgentBindingReason, "Agent %s is being bound: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
}

// problemFact names what assisted-service finds wrong with a host that is not being installed.
func problemFact(agent *assisted.Agent) (fact.Fact, bool) {
	if agent.Condition(assisted.ConditionConnected).Is("False") {
		return fact.Waiting(bootstrapv1.AgentDisconnectedReason, "Agent %s: assisted-service does not hear from the host; look at its console and network", agent.Name), true
	}
	failing := assisted.FailingChecks(agent.Status.ValidationsInfo)
	if len(failing) == 0 || !agent.HasInventory() {
		return fact.Fact{}, false
	}
	if len(failing) > maxChecks {
		failing = append(failing[:maxChecks:maxChecks], fmt.Sprintf("and %d more", len(failing)-maxChecks))
	}
	return fact.Waiting(bootstrapv1.AgentValidationsFailingReason, "Agent %s: %s", agent.Name, strings.Join(failing, "; ")), true
}

// departure is what a pass does for a Machine that is being deleted.
type departure struct {
	// agents are deleted, with assisted-service's cleanup of the installed cluster switched off.
	agents []assisted.Agent
	// unhook is true when the pre-terminate hook goes.
	unhook bool

	// recognized says what is waited for; nothing else does, while assisted-service does not answer.
	recognized fact.Fact
}

// leaves reports whether an Agent goes with the Machine: it is claimed for it, or not claimed yet and its host's.
func leaves(s *scope, agent *assisted.Agent) bool {
	switch agent.Annotations[bootstrapv1.ClaimAnnotation] {
	case s.claim():
		return true
	case "":
		return s.concerns(agent) && (s.config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv ||
			(s.host != nil && identity.Matches(agent, s.host, s.hosts)))
	default:
		return false
	}
}

// decideDeparture deletes the Machine's Agent before its host is freed, and never waits for the installed cluster (DESIGN D19).
func decideDeparture(s *scope) departure {
	if !atPreTerminate(s.machine) {
		return departure{}
	}
	d := departure{}
	for i := range s.agents {
		if leaves(s, &s.agents[i]) {
			d.agents = append(d.agents, s.agents[i])
		}
	}
	_, hooked := s.machine.Annotations[bootstrapv1.AgentDeletionHook]
	d.unhook = hooked && len(d.agents) == 0
	if len(d.agents) > 0 {
		d.recognized = fact.Waiting(bootstrapv1.WaitingForAgentDeletionReason, "the host is freed when assisted-service has let Agent %s go", d.agents[0].Name)
	}
	return d
}

// atPreTerminate reports whether core waits for pre-terminate hooks: the Node is drained and its volumes are detached by then
// (CONTRACT CORE-7). An Agent must not go earlier, while its Node still runs workloads.
func atPreTerminate(machine *clusterv1.Machine) bool {
	for _, c := range machine.Status.Conditions {
		if c.Type == clusterv1.MachineDeletingCondition {
			return c.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
		}
	}
	return false
}
