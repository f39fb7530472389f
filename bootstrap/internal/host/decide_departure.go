// SPDX-License-Identifier: Apache-2.0

package host

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// departure is what a pass does for a Machine that is being deleted.
type departure struct {
	// agents are deleted, with assisted-service's cleanup of the installed cluster switched off.
	agents []assisted.Agent
	// unhook is true when the pre-terminate hook goes, forget when the record of a power cycle goes from the BareMetalHost as well: it is of
	// no use for the next Machine.
	unhook, forget bool

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
	d.forget = d.unhook && wasCycled(s)
	if len(d.agents) > 0 {
		d.recognized = fact.Waiting(
			bootstrapv1.WaitingForAgentDeletionReason, "the host is freed when assisted-service has let Agent %s go", d.agents[0].Name,
		)
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
