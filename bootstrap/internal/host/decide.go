// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// maxChecks bounds how many failing checks a message names.
const maxChecks = 3

// decision is what a pass does for a Machine that lives, by subject and in this order, and what the conditions say of it. Its zero value
// decides that there is nothing to do; result tells that from a pass that could not decide.
type decision struct {
	// hook is true when the Machine has to get its pre-terminate hook.
	hook bool
	// healthy is what the condition HostHealthy says.
	healthy fact.Fact
	recognition
	joining
}

// joining is what a pass does to take the claimed host into the cluster: bind, approve or nudge it.
type joining struct {
	// bind is an Agent to bind; nil when there is none.
	bind *binding
	// approve is a bound Agent that gets its disk and is approved; nil when there is none.
	approve *assisted.Agent
	// nudge is an Agent whose refused bind is tried again, and the value that tells this try from the last one.
	nudge      *assisted.Agent
	nudgeValue string
	// disk is what the config records of the choice of the disk; empty when it is recorded.
	disk string
	// lookAgain is when the pass is repeated, because time alone changes what it says; 0 when only events matter.
	lookAgain time.Duration
	// installed is what the condition AgentInstalled says.
	installed fact.Fact
}

// binding is what the one patch of an Agent sets, always all of it (ASSISTED fact 3, 8.8 rule 5), but for a chosen disk, which follows
// together with the approval.
type binding struct {
	agent *assisted.Agent
	// claim is the Machine's claim, which the same patch makes; empty when the Agent has it.
	claim    string
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
	d := decision{hook: s.lacksHook(), healthy: hostFact(s)}
	if joined(s) && !s.hasClaimed() {
		d.recognized, d.installed = fact.Done(bootstrapv1.NodeJoinedReason), fact.Done(bootstrapv1.NodeJoinedReason)
		d.forget = wasCycled(s) // A power cycle that nobody has carried out yet would hit a running Node.
		return d
	}
	var agent *assisted.Agent
	if len(s.missingCRDs) > 0 {
		d.recognized = fact.Waiting(
			bootstrapv1.WaitingForCRDsReason, "CRDs %s are not served: install hive, assisted-service and Metal3", strings.Join(s.missingCRDs, ", "),
		)
	} else {
		d.recognition, agent = decideIdentity(s)
		d.lookAgain = max(d.wait.left(s.now), d.examine)
	}
	remembered, keeps := rememberedFact(s, agent)
	switch {
	case agent == nil && keeps:
		d.installed = remembered // While this stays, the host is not power-cycled.
	case agent == nil:
		d.installed = fact.Waiting(bootstrapv1.WaitingForRecognitionReason, "no host is recognised yet")
	case joined(s):
		d.installed = joinedFact(s, agent)
	case d.doubted:
		d.installed = progressFact(s, &d.joining, agent)
	case wasInstalled(s) && agent.Unbound():
		d.installed = unboundFact(s, agent)
	case keeps:
		d.installed = remembered
	default:
		d.installed = decideInstallation(s, &d.joining, agent)
	}
	if d.claim != nil && d.bind != nil {
		d.bind.claim, d.claim = s.claim(), nil
	}
	d.holdBind(s)
	return d
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
		return fact.Waiting(
			bootstrapv1.HostMissingReason,
			"BareMetalHost %s of Metal3Machine %s does not exist or is used by another: delete the Machine to get a new host", key.Name,
			s.infraMachine.GetName(),
		)
	}
	if failure := metal3.AssociationFailure(s.infraMachine); failure != "" {
		return fact.Waiting(
			bootstrapv1.NoHostAvailableReason,
			"Metal3Machine %s has no host: %s: look at the states and the errors of the BareMetalHosts", s.infraMachine.GetName(), failure,
		)
	}
	return fact.Done(bootstrapv1.HostNotAssociatedReason)
}

// decideInstallation binds the claimed Agent when the cluster takes hosts, and says how far its installation is.
func decideInstallation(s *scope, d *joining, agent *assisted.Agent) fact.Fact {
	role := roleOf(s.machine)
	gate := assisted.GateOf(s.install, role)
	if agent.Unbound() {
		return decideBind(s, d, agent, role, gate)
	}
	if s.install != nil && !agent.BoundTo(s.install.Namespace, s.install.Spec.ClusterDeploymentRef.Name) {
		return fact.Waiting(
			bootstrapv1.WaitingForClusterReason, "Agent %s is bound to ClusterDeployment %s, not to %s: clear its spec.clusterDeploymentName",
			agent.Name, agent.Spec.ClusterDeploymentName.Name, s.install.Spec.ClusterDeploymentRef.Name,
		)
	}
	recordDisk(s, d, agent.Annotations[bootstrapv1.InstallationDiskAnnotation])
	if agent.BindRefused() {
		return refusedBindFact(s, d, agent, role, gate)
	}
	if f, owed := decideDisk(d, agent); owed {
		return f
	}
	return progressFact(s, d, agent)
}

// refusedBindFact asks for a refused bind again while the cluster takes hosts, once in each phase of its installation. When
// assisted-service refuses it again, the start of an installation was not the cause: AgentInstalled says what the service says, and
// somebody has to act.
func refusedBindFact(s *scope, d *joining, agent *assisted.Agent, role string, gate assisted.Gate) fact.Fact {
	if gate == assisted.GateClosed {
		return closedFact(s, agent, role)
	}
	value := fmt.Sprintf("%s/%s", s.install.UID, assisted.PhaseOf(s.install))
	if agent.Annotations[bootstrapv1.BindNudgeAnnotation] != value {
		d.nudge, d.nudgeValue = agent, value
		return bindingFact(agent, agent.Spec.ClusterDeploymentName.Name)
	}
	return fact.Waiting(
		bootstrapv1.AgentNeedsAttentionReason,
		"Agent %s: assisted-service refuses to bind the host to ClusterDeployment %s: %s; mend the cause, then remove annotation %s from the "+
			"Agent to have it tried again",
		agent.Name,
		agent.Spec.ClusterDeploymentName.Name,
		agent.Condition(assisted.ConditionSpecSynced).Message,
		bootstrapv1.BindNudgeAnnotation,
	)
}

func decideBind(s *scope, d *joining, agent *assisted.Agent, role string, gate assisted.Gate) fact.Fact {
	if s.lacksHost() {
		return lacksHostFact(s, agent, "bound")
	}
	name := hostname(s)
	problems := validation.HostnameProblems(name)
	fencing, unfenced := fencingSecret(s, role)
	switch {
	case len(problems) > 0:
		return fact.Waiting(
			bootstrapv1.HostnameInvalidReason,
			"%s cannot be the name of a Node: %s; set spec.nodeRegistration.name of the template to %s, or rename the BareMetalHost, and delete "+
				"Machine %s",
			name, strings.Join(problems, "; "), bootstrapv1.NodeNameMachine, s.machine.Name,
		)
	case !rightArchitecture(s, agent):
		return fact.Waiting(
			bootstrapv1.ArchitectureMismatchReason,
			"Agent %s reports architecture %s, and spec.cpuArchitecture is %s: correct the template, or the labels by which its "+
				"Metal3MachineTemplate chooses hosts, and delete Machine %s",
			agent.Name, agent.Status.Inventory.CPU.Architecture, s.config.Spec.Architecture(), s.machine.Name,
		)
	case gate == assisted.GateClosed:
		return closedFact(s, agent, role)
	case gate != assisted.GateDayTwo && machineConfigPool(s, role) != "":
		// Until the cluster is installed, assisted-service would give the host to pool worker without a word.
		return fact.Waiting(
			bootstrapv1.WaitingForClusterReason,
			"Agent %s waits, registered and unbound, until the cluster is installed: it joins with MachineConfigPool %s", agent.Name,
			machineConfigPool(s, role),
		)
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
	return bindingFact(agent, ref)
}

// bindingFact has one text from the bind until the host is ready. assisted-service has many within these minutes.
func bindingFact(agent *assisted.Agent, deployment string) fact.Fact {
	return fact.Waiting(bootstrapv1.AgentBindingReason, "Agent %s is being bound to ClusterDeployment %s", agent.Name, deployment)
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

// machineConfigPool is the custom pool of a worker. Control-plane hosts have none: admission refuses one in a control plane's spec.
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

// joinedFact says of the Agent of a Machine that has a Node how far its installation is. An Agent that is not bound any more, or is as one
// that was just bound, is so because assisted-service or its ClusterDeployment was made anew: the host is a Node all the same, and is never
// bound nor approved again, which would write its disk.
func joinedFact(s *scope, agent *assisted.Agent) fact.Fact {
	if f, told := stageFact(s, agent); told && !agent.Unbound() && !cameBack(s, agent) {
		return f
	}
	return fact.Done(bootstrapv1.NodeJoinedReason)
}

// unboundFact says of an installed host without a Node that its Agent was taken from the cluster. AgentInstalled stays as it is, also when
// the host has booted the discovery image since: its disk holds what was installed, which may be a member of etcd, and the Machine that it
// belongs to was not deleted.
func unboundFact(s *scope, agent *assisted.Agent) fact.Fact {
	f := fact.Waiting(
		reasonOf(s),
		"Agent %s is not bound to the cluster any more, and its host is installed: it is neither rebooted nor installed again; to install a "+
			"host anew, delete Machine %s",
		agent.Name, s.machine.Name,
	)
	f.Status = conditions.Get(s.config, bootstrapv1.AgentInstalledCondition).Status
	return f
}

// cameBack reports whether a host that had been added, and then booted its discovery image, runs from its disk again. assisted-service does
// not look at such a host any more, and goes on to ask for somebody who boots it from its disk (ASSISTED 3.13).
func cameBack(s *scope, agent *assisted.Agent) bool {
	return agent.Status.DebugInfo.State == assisted.AgentStatePendingUserAction && agent.Status.Progress.CurrentStage == assisted.StageDone &&
		conditions.IsTrue(s.machine, clusterv1.MachineNodeReadyCondition)
}

// progressFact says how far the installation of a bound Agent is.
func progressFact(s *scope, d *joining, agent *assisted.Agent) fact.Fact {
	if f, told := preparationFact(s, agent); told && !agent.Refused() {
		return f
	}
	if f, told := stageFact(s, agent); told {
		return f
	}
	if agent.Refused() {
		return fact.Waiting(bootstrapv1.AgentNeedsAttentionReason, "Agent %s: assisted-service refuses what the host is given: %s",
			agent.Name, agent.Condition(assisted.ConditionSpecSynced).Message)
	}
	progress := false
	progress, d.lookAgain = settling(s, agent)
	if f, ok := problemFact(agent); ok && (!progress || f.Reason == bootstrapv1.AgentDisconnectedReason) {
		return f
	}
	if progress {
		return bindingFact(agent, agent.Spec.ClusterDeploymentName.Name)
	}
	return fact.Waiting(bootstrapv1.AgentBindingReason, "Agent %s is bound and not ready: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
}

// settleTime is how long a host may take after its bind until its checks pass: it has registered anew, and reports its inventory, its clock
// and what it reaches with its next two questions, one a minute. A healthy host was seen to take up to 2 min 15 s from the bind.
const settleTime = 5 * time.Minute

// settling reports whether failing checks of a host that is given to the cluster are progress and no problem yet, and for how long: 0 when
// an event tells.
func settling(s *scope, agent *assisted.Agent) (bool, time.Duration) {
	bound := agent.Condition(assisted.ConditionBound)
	if !bound.Is(corev1.ConditionTrue) {
		return true, 0
	}
	left := max(0, bound.LastTransitionTime.Add(settleTime).Sub(s.now))
	return left > 0, left
}

// problemFact names what assisted-service finds wrong with a host that is not being installed.
func problemFact(agent *assisted.Agent) (fact.Fact, bool) {
	if agent.Condition(assisted.ConditionConnected).Is("False") {
		return fact.Waiting(
			bootstrapv1.AgentDisconnectedReason, "Agent %s: assisted-service does not hear from the host; look at its console and network",
			agent.Name,
		), true
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
