// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// stateInfos are what the service says besides a state.
var stateInfos = map[string]string{assisted.AgentStatePendingUserAction: "Host timed out when pulling the configuration files."}

// nextState is the state that follows of the Agent of a server that cannot be installed as it is; ok is false when another decides.
func (s *server) nextState(state string) (next string, ok bool) {
	switch {
	case state == agentInstalling && s.broken:
		return agentError, true
	case state == agentInstalling && s.misled:
		return assisted.AgentStatePendingUserAction, true
	case state == assisted.AgentStatePendingUserAction && !s.misled:
		return agentInstalling, true
	}
	return "", false
}

// installed is the stage that follows that of installing: the service waits for a host that waits for a person, and goes on without the one
// worker that has failed (ASSISTED 3.11 and 3.12).
func (w *world) installed() string {
	waits := func(a assisted.Agent) bool { return a.Status.DebugInfo.State == assisted.AgentStatePendingUserAction }
	fails := func(a assisted.Agent) bool {
		_, soon := w.servers[strings.TrimPrefix(a.Name, "agent-")].nextState(a.Status.DebugInfo.State)
		return soon
	}
	switch agents := w.agents(); {
	case w.fails:
		return stageError
	case slices.ContainsFunc(agents, waits):
		return assisted.ClusterStateInstallingPending
	case slices.ContainsFunc(agents, fails):
		return w.stage
	}
	return assisted.ClusterStateFinalizing
}

// says reports whether AgentInstalled of a config has a reason and a text.
func says(config, reason, text string) func(*world) bool {
	return func(w *world) bool {
		c := w.config(config)
		return c != nil && conditions.GetReason(c, bootstrapv1.AgentInstalledCondition) == reason &&
			strings.Contains(conditions.GetMessage(c, bootstrapv1.AgentInstalledCondition), text)
	}
}
