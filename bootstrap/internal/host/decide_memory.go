// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// begunReasons are those reasons of AgentInstalled that say, while it is False, that the installation of the host has begun. The condition
// is the only record of that which outlives the Agent, so it keeps one of them until another Agent, or the same one, tells otherwise.
var begunReasons = []string{
	bootstrapv1.AgentInstallingReason, bootstrapv1.AgentPendingUserActionReason, bootstrapv1.AgentInstallationFailedReason,
}

// wasInstalled reports whether the config says that the Machine's host runs the installed system, or was rebooted to it: the service asks
// for somebody to act from the reboot on only, of a host whose disk is written (ASSISTED 3.12, 3.13). Such a host is never power-cycled,
// also while nobody can see its Node: the Machine gets neither node reference nor provider ID before the cluster's API can be reached.
func wasInstalled(s *scope) bool {
	return conditions.IsTrue(s.config, bootstrapv1.AgentInstalledCondition) || reasonOf(s) == bootstrapv1.AgentPendingUserActionReason
}

// wasInstalling reports whether the config says that the installation of the Machine's host has begun. Such a host is not power-cycled
// either when its Agent vanishes: it may run the installed system by now. The Agents of all hosts vanish when assisted-service loses its
// database, and a hub that was restored from a backup knows of nothing that came later.
func wasInstalling(s *scope) bool { return slices.Contains(begunReasons, reasonOf(s)) }

func reasonOf(s *scope) string {
	return conditions.GetReason(s.config, bootstrapv1.AgentInstalledCondition)
}

// rememberedFact is what the config goes on to say of a host that is installed, or whose installation has begun, while no Agent tells how
// far it is; keeps is false when one does, or there is nothing to remember. An Agent that is taken from its cluster tells nothing, nor does
// one whose state the service does not know. One whose host waits in the discovery image does: its installation is over.
func rememberedFact(s *scope, agent *assisted.Agent) (_ fact.Fact, keeps bool) {
	if !wasInstalled(s) && !wasInstalling(s) {
		return fact.Fact{}, false
	}
	if agent != nil {
		if _, told := stageFact(s, agent); told || agent.Discovers() {
			return fact.Fact{}, false
		}
	}
	reason := reasonOf(s)
	switch {
	case conditions.IsTrue(s.config, bootstrapv1.AgentInstalledCondition):
		return fact.Done(reason), true
	case reason == bootstrapv1.AgentInstallationFailedReason:
		return fact.Waiting(reason, "the installation of the host has failed, and no Agent tells why"), true
	}
	return fact.Waiting(reason, "the installation of the host has begun, and no Agent tells how far it is"), true
}
