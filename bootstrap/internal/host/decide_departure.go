// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// departure is what a pass does for a Machine that is being deleted.
type departure struct {
	// agents are deleted, with assisted-service's cleanup of the installed cluster switched off.
	agents []assisted.Agent
	// unhook is true when the pre-terminate hook goes, forget when the record of a power cycle goes from the BareMetalHost as well: it is of
	// no use for the next Machine.
	unhook, forget bool

	// healthy says what keeps the host from being freed; nothing else does while baremetal-operator tries again, so that the condition
	// HostHealthy does not change with every attempt.
	healthy fact.Fact
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
	d := departure{healthy: departingHostFact(s)}
	atHook := coreSays(s.machine, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	if !atHook && !pastHook(s) {
		return d
	}
	for i := range s.agents {
		if leaves(s, &s.agents[i]) {
			d.agents = append(d.agents, s.agents[i])
		}
	}
	if len(d.agents) > 0 {
		d.recognized = leavingFact(s, d.agents[0].Name)
		return d
	}
	_, d.unhook = s.machine.Annotations[bootstrapv1.AgentDeletionHook]
	d.forget = d.unhook && wasCycled(s)
	if !atHook {
		d.recognized = releaseFact(s, d)
	}
	return d
}

// leavingFact says that an Agent is waited for.
func leavingFact(s *scope, agent string) fact.Fact {
	if s.lacksHook() {
		return fact.Waiting(
			bootstrapv1.WaitingForAgentDeletionReason, "Machine %s has no pre-terminate hook, and assisted-service has not let Agent %s go yet",
			s.machine.Name, agent,
		)
	}
	return fact.Waiting(
		bootstrapv1.WaitingForAgentDeletionReason, "the host is freed when assisted-service has let Agent %s go", agent,
	)
}

// departingHostFact says whether the BareMetalHost lets its Machine go: baremetal-operator needs the BMC to free it and tries again without
// end, and Metal3 and Cluster API wait for it without a word of why (METAL3 M3-56, M3-61).
func departingHostFact(s *scope) fact.Fact {
	if s.host == nil {
		return fact.Fact{}
	}
	switch text := metal3.Error(s.host); {
	case text == "" && metal3.Retries(s.host):
		return fact.Fact{}
	case text == "":
		return fact.Done(bootstrapv1.HostHealthyReason)
	case !metal3.Deprovisioning(s.host):
		return fact.Waiting(bootstrapv1.HostErrorReason, "%s", text)
	default:
		return fact.Waiting(
			bootstrapv1.HostErrorReason,
			"%s. Machine %s is not gone before its host is freed, which is tried again and again: repair the BMC, or its credentials; if the "+
				"host is lost, make sure that it has no power and delete BareMetalHost %s",
			text, s.machine.Name, s.host.Name,
		)
	}
}

// releaseFact says that the Agent is gone and the host is not free, when that does not pass by itself. Otherwise HostRecognized would go on
// to name the Agent as what is waited for. Of a deletion that goes well it says nothing: it would be a write for nothing.
func releaseFact(s *scope, d departure) fact.Fact {
	if d.healthy.Status != metav1.ConditionFalse ||
		conditions.GetReason(s.config, bootstrapv1.HostRecognizedCondition) != bootstrapv1.WaitingForAgentDeletionReason {
		return fact.Fact{}
	}
	return fact.Waiting(
		bootstrapv1.WaitingForHostReleaseReason, "the Agent of the host is gone, and BareMetalHost %s is not freed yet", s.host.Name,
	)
}

// pastHook reports whether core frees the host of a Machine without the pre-terminate hook. An earlier pass has removed it and left no
// Agent, or somebody else has, and then the Agent goes late: otherwise core would wait for the config, and the config for the Agent.
func pastHook(s *scope) bool {
	return s.lacksHook() && coreSays(
		s.machine, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason,
	)
}

// coreSays reports whether core says one of the reasons why it has not deleted the Machine yet. When it waits for pre-terminate hooks, or
// for what comes later, the Node is drained and its volumes are detached (CONTRACT CORE-7). An Agent must not go earlier, while its Node
// still runs workloads.
func coreSays(machine *clusterv1.Machine, reasons ...string) bool {
	return slices.Contains(reasons, conditions.GetReason(machine, clusterv1.MachineDeletingCondition))
}
