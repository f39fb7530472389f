// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// clockSkew is how far the clock of baremetal-operator, which says when the provisioning of a host began, may be ahead of that of the API
// server, which says when an Agent was made. A host takes longer than that to boot, so an Agent that is older by more was there before the
// host was given the image. A clock that is ahead by even more costs reboots until the host's Agent is younger, and lets nobody in.
const clockSkew = time.Minute

// recognition is what a pass does about the identity of the Machine's host: it withdraws, deletes or claims one Agent, or power-cycles the
// host.
type recognition struct {
	// withdraw is a claimed Agent that is unbound and loses its approval, because it may not be the Machine's host; nil when there is none.
	withdraw *assisted.Agent
	// release is true when the claim of that Agent goes too.
	release bool
	// disputed is true when another Agent or BareMetalHost has the identity of the claimed host; recognized names both.
	disputed bool
	// leftover is an Agent of an earlier life of the host, which is deleted; nil when there is none.
	leftover *assisted.Agent
	// claim is an Agent to claim; nil when there is nothing to claim.
	claim *assisted.Agent
	// reboot is true when the host is power-cycled, because its Agent was lost before it was installed, and rebooted when it was already: the
	// config only has to forget the Agent.
	reboot, rebooted bool
	// wait is how far a host is that was booted and has not registered; its zero value says nothing.
	wait registrationWait
	// examine is how long assisted-service may still take to examine a host that was recognised; 0 when an event tells.
	examine time.Duration
	// forget is true when the record of a power cycle goes from the BareMetalHost, because the host has registered since.
	forget bool
	// record is the name of the Agent to record on the config; empty when it is recorded.
	record string
	// doubted: the Agent is only shown, because its installation has begun: nothing is decided about it any more (DESIGN D6).
	doubted bool
	// recognized is what the condition HostRecognized says; its zero value leaves the condition as it is.
	recognized fact.Fact
}

// decideIdentity recognises the Machine's host and claims it. It returns the Agent when it is claimed, or is claimed in this pass and may
// be bound in the same patch.
func decideIdentity(s *scope) (recognition, *assisted.Agent) {
	d := recognition{}
	verdict := recognize(s)
	recorded := s.config.Annotations[bootstrapv1.AgentAnnotation]
	lost := recorded != "" && !slices.ContainsFunc(s.agents, func(a assisted.Agent) bool { return a.Name == recorded })
	switch agent := verdict.Agent; {
	case verdict.Doubted != nil:
		d.recognized, d.doubted = decideDoubt(s, &d, verdict), true
		return d, doubted(s, verdict)
	case agent == nil && lost && !joined(s):
		d.recognized = lostFact(s, &d, recorded)
		return d, nil
	case agent == nil:
		d.wait = registrationWaitOf(s, verdict)
		d.recognized = unregisteredFact(s, d.wait, verdict)
		return d, nil
	case agent.Annotations[bootstrapv1.ClaimAnnotation] != s.claim():
		d.recognized = decideClaim(s, &d, agent)
		return d, d.unboundClaim()
	case !agent.DeletionTimestamp.IsZero():
		d.recognized = fact.Waiting(bootstrapv1.WaitingForAgentReason, "Agent %s is being deleted", agent.Name)
		return d, nil
	case s.lacksHook():
		d.recognized = hookFact(s, agent)
		return d, nil
	case recorded != agent.Name:
		d.record = agent.Name
	}
	d.forget, d.disputed = wasCycled(s), verdict.Note != ""
	d.recognized = fact.Ongoing(bootstrapv1.HostRecognizedReason, "%s", verdict.Note)
	return d, verdict.Agent
}

// joined reports whether the Machine's host is a Node. The provider ID tells it where status does not, as after a move, which leaves status
// and Agents behind (CONTRACT CTL-42, DESIGN D22). Metal3 sets it when the Node exists, other infrastructure before its host registers.
func joined(s *scope) bool { return isNode(s.machine) }

func isNode(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() || m.Spec.ProviderID != "" && metal3.IsMachineRef(m.Spec.InfrastructureRef)
}

// unboundClaim returns the Agent to claim if nobody has bound it. One that somebody has bound is looked at in the next pass.
func (d recognition) unboundClaim() *assisted.Agent {
	if d.claim == nil || d.claim.Spec.ClusterDeploymentName != nil {
		return nil
	}
	return d.claim
}

// unrecognizedFact says why no Agent is recognised, and that none of those that could be is approved.
func unrecognizedFact(verdict identity.Verdict) fact.Fact {
	if verdict.Remedy == "" {
		return fact.Waiting(verdict.Reason, "%s", verdict.Message)
	}
	return fact.Waiting(verdict.Reason, "%s, so none of them is approved: %s", verdict.Message, verdict.Remedy)
}

func hookFact(s *scope, agent *assisted.Agent) fact.Fact {
	return fact.Waiting(
		bootstrapv1.ClaimingAgentReason, "Agent %s is recognised; Machine %s gets its pre-terminate hook first", agent.Name, s.machine.Name,
	)
}

// decideClaim claims the Agent of the Machine's host, or deletes it when it is of an earlier life of the host. The config records the Agent
// before either: an Agent that is gone afterwards has left a host that waits for a reboot, whoever deleted it (ASSISTED fact 11).
func decideClaim(s *scope, d *recognition, agent *assisted.Agent) fact.Fact {
	switch {
	case joined(s):
		// It is the running host that registers anew, or one that pretends to be it.
		return fact.Done(bootstrapv1.NodeJoinedReason)
	case !agent.DeletionTimestamp.IsZero():
		return fact.Waiting(bootstrapv1.WaitingForAgentReason, "Agent %s is being deleted", agent.Name)
	case !s.config.DeletionTimestamp.IsZero():
		return fact.Waiting(
			bootstrapv1.WaitingForAgentReason, "Agent %s is not claimed: OpenshiftAssistedConfig %s is being deleted; delete Machine %s as well",
			agent.Name, s.config.Name, s.machine.Name,
		)
	case s.lacksHost():
		return lacksHostFact(s, agent, "claimed")
	case s.host != nil && !metal3.Provisioned(s.host):
		return fact.Waiting(
			bootstrapv1.WaitingForHostReason,
			"BareMetalHost %s %s: Agent %s, which has its identity, is not claimed before the host is booted", s.host.Name,
			metal3.StateText(s.host), agent.Name,
		)
	case s.lacksHook():
		return hookFact(s, agent)
	case wasInstalled(s) && agent.Unbound():
		return fact.Waiting(
			bootstrapv1.AgentLostReason,
			"Agent %s is new, and its host was installed: the host has booted the discovery image instead of its disk, and is not installed again; "+
				"let it boot its disk, or delete Machine %s to install a host anew", agent.Name, s.machine.Name,
		)
	case earlierLife(s, agent):
		return decideLeftover(s, d, agent)
	case !agent.Examined():
		return unexaminedFact(s, d, agent)
	}
	recordAgent(s, d, agent)
	d.claim, d.forget = agent, wasCycled(s)
	return fact.Done(bootstrapv1.HostRecognizedReason)
}

// decideLeftover deletes an Agent of an earlier life of the host. Without a BareMetalHost there is nothing to reboot when it is gone.
func decideLeftover(s *scope, d *recognition, agent *assisted.Agent) fact.Fact {
	if s.host != nil {
		recordAgent(s, d, agent)
	}
	d.leftover = agent
	return fact.Waiting(
		bootstrapv1.WaitingForAgentReason,
		"Agent %s is of an earlier life of the host and is being deleted; the host is rebooted to register again", agent.Name,
	)
}

// recordAgent has the config record an Agent before it is claimed or deleted. What was asked for when an Agent of this name was lost before
// must not be taken for what its next loss asks for.
func recordAgent(s *scope, d *recognition, agent *assisted.Agent) {
	if s.config.Annotations[bootstrapv1.AgentAnnotation] != agent.Name {
		d.record, d.forget = agent.Name, wasCycled(s)
	}
}

// examineTime is how long a host may take from its registration until assisted-service has examined it: it has reported its hardware by
// then, and the service looks every 8 to 10 s.
const examineTime = 2 * time.Minute

// unexaminedFact says of a host that is claimed when assisted-service has examined it no more than that its Agent is waited for, which
// HostRecognized says already, unless that takes longer than it may: each text is a write of ours and one of Cluster API's (DESIGN D37).
func unexaminedFact(s *scope, d *recognition, agent *assisted.Agent) fact.Fact {
	left := agent.CreationTimestamp.Add(examineTime).Sub(s.now)
	if left > 0 && conditions.GetReason(s.config, bootstrapv1.HostRecognizedCondition) == bootstrapv1.WaitingForAgentReason {
		d.examine = left
		return fact.Fact{}
	}
	return fact.Waiting(
		bootstrapv1.ClaimingAgentReason, "Agent %s is recognised, and is claimed when assisted-service has examined the host", agent.Name,
	)
}

// earlierLife reports whether an Agent that is not claimed for the Machine is there for another reason than that its host runs what the
// Machine gave it: it was claimed for a Machine that has vanished, or is older than the Machine or than the provisioning of its host. The
// object of a host that registers again stays the same, so a host that does run the Machine's image may have such an Agent (DESIGN D19).
func earlierLife(s *scope, agent *assisted.Agent) bool {
	if agent.Annotations[bootstrapv1.ClaimAnnotation] != "" || agent.CreationTimestamp.Before(&s.machine.CreationTimestamp) {
		return true
	}
	if s.host == nil {
		return false
	}
	began := metal3.ProvisioningBegan(s.host)
	return !began.IsZero() && agent.CreationTimestamp.Time.Before(began.Add(-clockSkew))
}

// recognize applies the rule of spec.hostIdentity. A claimed Agent that has registered through another InfraEnv since is not the Machine's
// host any more: that one boots the image that the Machine gave it.
func recognize(s *scope) identity.Verdict {
	verdict := recognizeByIdentity(s)
	agent, own := verdict.Agent, s.config.Annotations[bootstrapv1.InfraEnvAnnotation]
	if agent == nil || own == "" || begun(s, agent) || agent.Labels[assisted.InfraEnvLabel] == own {
		return verdict
	}
	return identity.Verdict{Reason: bootstrapv1.AgentNotRecognizedReason, Doubted: agent,
		Message: fmt.Sprintf("Agent %s was claimed for Machine %s and has registered through InfraEnv %s since, while the Machine's is %s",
			agent.Name, s.machine.Name, agent.Labels[assisted.InfraEnvLabel], own),
		Remedy: "find the host that boots the image of the other InfraEnv, power it off, and reboot the host of the Machine"}
}

func recognizeByIdentity(s *scope) identity.Verdict {
	if s.config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv {
		return recognizeByInfraEnv(s)
	}
	if s.host == nil {
		return identity.Verdict{Reason: bootstrapv1.WaitingForHostReason, Message: "no BareMetalHost is associated with the Machine yet"}
	}
	return identity.Recognize(identity.Request{
		Host: s.host, Hosts: s.hosts, Agents: s.agents, AllAgents: s.allAgents, Claim: s.claim(), LivingClaims: s.livingClaims,
	})
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
				"Agent %s registered through the Machine's own InfraEnv and is claimed for Machine %s: its host booted the wrong image", agent.Name,
				other,
			)}
		}
		return identity.Verdict{Agent: agent}
	}
	return identity.Several(
		s.agents, s.claim(), "registered through the Machine's own InfraEnv",
		"find the host that does not belong there, power it off and delete its Agent",
	)
}

// decideDoubt takes back what was given to a claimed Agent that may not be the Machine's host. Once its installation has begun nothing is
// torn down: the service refuses to unbind it on day 1, and its disk is written.
func decideDoubt(s *scope, d *recognition, verdict identity.Verdict) fact.Fact {
	agent := verdict.Doubted
	d.disputed = true
	switch {
	case begun(s, agent):
		return fact.Waiting(
			verdict.Reason,
			"%s. The installation of Agent %s has begun, and nothing that runs is torn down: %s; delete Machine %s if Agent %s is the wrong one",
			verdict.Message, agent.Name, verdict.Remedy, s.machine.Name, agent.Name,
		)
	case agent.Spec.Approved || agent.Spec.ClusterDeploymentName != nil || verdict.Release:
		d.withdraw, d.release = agent, verdict.Release
	}
	return fact.Waiting(
		verdict.Reason, "%s, so what Agent %s was given is taken back and no Agent is approved: %s", verdict.Message, agent.Name, verdict.Remedy,
	)
}

// doubted returns the doubted Agent if its installation has begun, so that the condition AgentInstalled goes on to show its progress, and
// nil otherwise.
func doubted(s *scope, verdict identity.Verdict) *assisted.Agent {
	if begun(s, verdict.Doubted) {
		return verdict.Doubted
	}
	return nil
}

// begun reports whether the installation of a claimed Agent has begun, or is over.
func begun(s *scope, agent *assisted.Agent) bool {
	return joined(s) || agent.Installing() || agent.Installed() || agent.Failed() || takesPart(s, agent.Name)
}

// lacksHostFact says why an Agent is not claimed, or not bound, for a Machine without a BareMetalHost.
func lacksHostFact(s *scope, agent *assisted.Agent, done string) fact.Fact {
	return fact.Waiting(
		bootstrapv1.WaitingForHostReason, "Agent %s is not %s: Machine %s has no BareMetalHost yet, and Metal3 finds the Node by the UID of that",
		agent.Name, done, s.machine.Name,
	)
}

// lostFact says that the claimed Agent of a host without a Node is gone. The host is frozen until it is rebooted (ASSISTED fact 11), so it
// is power-cycled, unless it may run an installed system, or takes part in a running installation, which fails without it anyway.
func lostFact(s *scope, d *recognition, name string) fact.Fact {
	switch {
	case wasInstalled(s):
		return fact.Waiting(
			bootstrapv1.AgentLostReason,
			"Agent %s does not exist any more, and its host is installed: it is not rebooted. Machine %s gets its Node when the API of the "+
				"cluster can be reached; if it gets none, delete Machine %s to install a host anew",
			name, s.machine.Name, s.machine.Name,
		)
	case wasInstalling(s):
		return fact.Waiting(
			bootstrapv1.AgentLostReason,
			"Agent %s does not exist any more, and the installation of its host has begun: it is not rebooted. If Machine %s gets no Node, "+
				"delete it to install a host anew",
			name, s.machine.Name,
		)
	case !metal3.IsMachineRef(s.machine.Spec.InfrastructureRef) && s.machine.Spec.ProviderID != "":
		// After a move nothing but the provider ID is left of an installed host, and other infrastructure sets it before that.
		return fact.Waiting(
			bootstrapv1.AgentLostReason,
			"Agent %s does not exist any more: if its host was installed, Machine %s gets its Node when the API of the cluster can be reached; if "+
				"its host runs nothing, delete the Machine to install the host anew",
			name, s.machine.Name,
		)
	case s.host == nil, takesPart(s, name):
		return fact.Waiting(bootstrapv1.AgentLostReason, "Agent %s does not exist any more: delete the Machine to install the host anew", name)
	}
	d.rebooted = cycledFor(s, name)
	if held := metal3.HeldBy(s.host); held != "" && !d.rebooted {
		return fact.Waiting(
			bootstrapv1.AgentLostReason,
			"Agent %s does not exist any more: BareMetalHost %s is rebooted to register again when its annotation %s is removed",
			name, s.host.Name, held,
		)
	}
	d.reboot = !d.rebooted
	return fact.Waiting(
		bootstrapv1.AgentLostReason, "Agent %s does not exist any more: BareMetalHost %s is rebooted to register again", name, s.host.Name,
	)
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
