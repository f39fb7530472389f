// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// preparationFact says of a host that is ready, or being prepared, whether the installation could be prepared on it; told is false in other
// states. The service tries again within seconds: a host that fails is ready, preparing and failed in turns, and the others are ready and
// prepared in turns. What was told stays until a preparation has succeeded, so that the rounds are no news.
func preparationFact(s *scope, agent *assisted.Agent) (_ fact.Fact, told bool) {
	subject := "Agent " + agent.Name + ": "
	earlier := conditions.Get(s.config, bootstrapv1.AgentInstalledCondition)
	failed := earlier != nil && earlier.Reason == bootstrapv1.AgentPreparationFailedReason && strings.HasPrefix(earlier.Message, subject)
	state := agent.Status.DebugInfo.State
	switch {
	case state == assisted.AgentStatePreparingFailed:
		return fact.Waiting(bootstrapv1.AgentPreparationFailedReason, "%s", subject+agent.Status.DebugInfo.StateInfo), true
	case failed && (state == assisted.AgentStatePreparing || agent.ReadyToInstall()):
		return fact.Waiting(bootstrapv1.AgentPreparationFailedReason, "%s", earlier.Message), true
	case state == assisted.AgentStatePreparing, state == assisted.AgentStatePreparingSuccessful, agent.ReadyToInstall():
		return fact.Waiting(bootstrapv1.AgentReadyReason, "Agent %s is ready and waits for the installation to begin", agent.Name), true
	}
	return fact.Fact{}, false
}
