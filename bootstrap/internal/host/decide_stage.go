// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// stateInfoTimedOut is how the service describes a host that has rebooted and that nobody has seen since.
const stateInfoTimedOut = "Host timed out"

// stageFact says how far an installation is that has begun; told is false when none has.
func stageFact(s *scope, agent *assisted.Agent) (_ fact.Fact, told bool) {
	switch {
	case agent.Installed():
		return fact.Done(bootstrapv1.AgentInstalledReason), true
	case agent.Failed():
		return failedFact(s, agent), true
	case agent.Status.DebugInfo.State == assisted.AgentStatePendingUserAction:
		return attentionFact(s, agent), true
	case agent.Installing():
		// One text for all stages: each, or its percentage, would be a write of ours and one of Cluster API's, which copies it (DESIGN D37).
		return fact.Waiting(
			bootstrapv1.AgentInstallingReason, "Agent %s: the host is being installed; its stage is in status.progress of the Agent", agent.Name,
		), true
	}
	return fact.Fact{}, false
}

// failedFact says why the installation of a host failed, and what to do when its cluster is installed without it: the service does not try
// again, and its own text names a reset of the cluster, which no user of this provider can ask for. While the cluster is not installed, or
// is not any more, the control plane says what follows.
func failedFact(s *scope, agent *assisted.Agent) fact.Fact {
	message := fmt.Sprintf("Agent %s: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
	if joinsInstalled(s) {
		message += fmt.Sprintf("; the cluster is installed without this host: mend the cause, then delete Machine %s, so that one in its place "+
			"joins", s.machine.Name)
	}
	return fact.Waiting(bootstrapv1.AgentInstallationFailedReason, "%s", message)
}

// attentionFact says why somebody has to look after a host. Of one that joins an installed cluster the service knows only that it has not
// seen its Node: the host may be well, and the cluster may not let the service in, of which the service says nothing (ASSISTED 3.19).
func attentionFact(s *scope, agent *assisted.Agent) fact.Fact {
	message := fmt.Sprintf("Agent %s: %s", agent.Name, agent.Status.DebugInfo.StateInfo)
	if strings.HasPrefix(agent.Status.DebugInfo.StateInfo, stateInfoTimedOut) && joinsInstalled(s) {
		message += fmt.Sprintf("; if the host is well, see that the API of the cluster answers, and takes the credential in Secret %s%s: "+
			"assisted-service lets the host in by it", s.install.Spec.ClusterDeploymentRef.Name, assisted.AdminKubeconfigSuffix)
	}
	return fact.Waiting(bootstrapv1.AgentPendingUserActionReason, "%s", message)
}

// joinsInstalled reports whether the Machine's host, which is no Node yet, is to join a cluster that is installed.
func joinsInstalled(s *scope) bool {
	return s.install != nil && assisted.PhaseOf(s.install) == assisted.PhaseCompleted && !joined(s)
}
