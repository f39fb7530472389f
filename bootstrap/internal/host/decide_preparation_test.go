// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// preparing takes the Agent of a scope through the states of a preparation, with the conditions that assisted-service gives it in each
// (image-preparation-failure-loop.log), and has a pass over it each time.
type preparing struct{ *scope }

func (p preparing) pass(state, info string) {
	condition := func(conditionType string, status corev1.ConditionStatus, reason string) assisted.Condition {
		return assisted.Condition{Type: conditionType, Status: status, Reason: reason}
	}
	requirements, installed := condition(assisted.ConditionRequirementsMet, "True", "AgentAlreadyInstalling"),
		condition(assisted.ConditionInstalled, "False", assisted.ReasonInstallationInProgress)
	switch state {
	case assisted.AgentStateKnown:
		requirements, installed = condition(assisted.ConditionRequirementsMet, "True", assisted.ReasonAgentIsReady),
			condition(assisted.ConditionInstalled, "False", "InstallationNotStarted")
	case assisted.AgentStatePreparingFailed:
		requirements, installed = condition(assisted.ConditionRequirementsMet, "Unknown", "UnknownStatus"),
			condition(assisted.ConditionInstalled, "Unknown", "UnknownStatus")
	}
	bound(
		&p.agents[0], state, boundTrue, condition(assisted.ConditionSpecSynced, "True", "SyncOK"),
		condition(assisted.ConditionConnected, "True", "AgentIsConnected"), requirements, installed,
	)
	p.agents[0].Status.DebugInfo.StateInfo = info
	d := decide(p.scope)
	setStatus(p.config, result{decision: &d})
}

func (p preparing) reason() string {
	return conditions.GetReason(p.config, bootstrapv1.AgentInstalledCondition)
}

// TestPreparationThatFails: the service tries again within seconds, so a host is ready, preparing and failed in turns. The config tells of
// the failure until the preparation has succeeded, and the rounds are no news, of this host nor of the others.
func TestPreparationThatFails(t *testing.T) {
	const ready, prepares, failure = "Host is ready to be installed", "Host finished successfully to prepare for installation", "no images"
	t.Run("the host that fails", func(t *testing.T) {
		g := NewWithT(t)
		p := preparing{discovered()}
		p.pass(assisted.AgentStateKnown, ready)
		g.Expect(p.reason()).To(Equal(bootstrapv1.AgentReadyReason))
		p.pass(assisted.AgentStatePreparing, prepares)
		p.pass(assisted.AgentStatePreparingFailed, failure)
		g.Expect(p.reason()).To(Equal(bootstrapv1.AgentPreparationFailedReason))
		g.Expect(conditions.GetMessage(p.config, bootstrapv1.AgentInstalledCondition)).To(Equal("Agent a-0: no images"))
		told := p.config.DeepCopy()
		for range 5 {
			p.pass(assisted.AgentStateKnown, ready)
			g.Expect(p.config).To(Equal(told))
			p.pass(assisted.AgentStatePreparing, prepares)
			g.Expect(p.config).To(Equal(told))
			p.pass(assisted.AgentStatePreparingFailed, failure)
			g.Expect(p.config).To(Equal(told))
		}
		p.pass(assisted.AgentStatePreparingSuccessful, prepares)
		g.Expect(p.reason()).To(Equal(bootstrapv1.AgentReadyReason), "it has succeeded at last")
		p.pass("installing", "Installation is in progress")
		g.Expect(p.reason()).To(Equal(bootstrapv1.AgentInstallingReason))
	})
	t.Run("another host of the cluster", func(t *testing.T) {
		g := NewWithT(t)
		p := preparing{discovered()}
		p.pass(assisted.AgentStateKnown, ready)
		told := p.config.DeepCopy()
		for range 5 {
			p.pass(assisted.AgentStatePreparing, prepares)
			g.Expect(p.config).To(Equal(told))
			p.pass(assisted.AgentStatePreparingSuccessful, prepares)
			g.Expect(p.config).To(Equal(told))
			p.pass(assisted.AgentStateKnown, ready)
			g.Expect(p.config).To(Equal(told))
		}
	})
	t.Run("the failure of another Agent is not told of this one", func(t *testing.T) {
		g := NewWithT(t)
		p := preparing{discovered()}
		p.pass(assisted.AgentStatePreparingFailed, failure)
		p.agents[0].Name = "a-1"
		p.config.Annotations[bootstrapv1.AgentAnnotation] = "a-1"
		p.pass(assisted.AgentStatePreparing, prepares)
		g.Expect(p.reason()).To(Equal(bootstrapv1.AgentReadyReason))
	})
}
