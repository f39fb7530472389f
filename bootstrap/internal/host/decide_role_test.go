// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func twoNode(s *scope, kind string) {
	s.install.Annotations = map[string]string{assisted.TwoNodeAnnotation: kind}
}

func arbiter(s *scope) { s.machine.Labels = map[string]string{bootstrapv1.ArbiterLabel: ""} }

func TestDecideTwoNode(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*scope)
		reason  string
		role    string // that the Agent is bound with; empty when it is not
		fencing string
	}{
		{
			name: "an arbiter", change: func(s *scope) { arbiter(s); twoNode(s, assisted.TwoNodeArbiter) }, reason: bootstrapv1.AgentBindingReason,
			role: assisted.RoleArbiter,
		},
		{name: "an arbiter of a cluster without", change: arbiter, reason: bootstrapv1.ArbiterNotTakenReason},
		{
			name: "an arbiter of a cluster with fencing", change: func(s *scope) { arbiter(s); twoNode(s, assisted.TwoNodeFencing) },
			reason: bootstrapv1.ArbiterNotTakenReason,
		},
		{
			name: "an arbiter on day 2", change: func(s *scope) { arbiter(s); twoNode(s, assisted.TwoNodeArbiter); completed(s) },
			reason: bootstrapv1.ArbiterNotTakenReason,
		},
		{name: "an arbiter while others are installed", change: func(s *scope) {
			arbiter(s)
			twoNode(s, assisted.TwoNodeArbiter)
			s.install.Annotations[assisted.DayOneAgentsAnnotation] = "a-9"
		}, reason: bootstrapv1.WaitingForClusterReason},
		{
			name: "a control-plane host beside an arbiter", change: func(s *scope) { twoNode(s, assisted.TwoNodeArbiter) },
			reason: bootstrapv1.AgentBindingReason, role: assisted.RoleMaster,
		},
		{
			name: "no credentials for fencing", change: func(s *scope) { twoNode(s, assisted.TwoNodeFencing) },
			reason: bootstrapv1.FencingCredentialsMissingReason,
		},
		{name: "credentials for fencing", change: func(s *scope) {
			twoNode(s, assisted.TwoNodeFencing)
			s.host.Annotations = map[string]string{bootstrapv1.FencingCredentialsAnnotation: "host-0-fencing"}
		}, reason: bootstrapv1.AgentBindingReason, role: assisted.RoleMaster, fencing: "host-0-fencing"},
		{name: "credentials that no cluster asks for", change: func(s *scope) {
			s.host.Annotations = map[string]string{bootstrapv1.FencingCredentialsAnnotation: "host-0-fencing"}
		}, reason: bootstrapv1.AgentBindingReason, role: assisted.RoleMaster},
		{name: "a worker beside fencing", change: func(s *scope) { worker(s); twoNode(s, assisted.TwoNodeFencing); completed(s) },
			reason: bootstrapv1.AgentBindingReason, role: assisted.RoleWorker},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			tt.change(s)
			d := decide(s)
			g.Expect(d.installed.Reason).To(Equal(tt.reason), d.installed.Message)
			if tt.role == "" {
				g.Expect(d.bind).To(BeNil())
				return
			}
			g.Expect(d.bind.role).To(Equal(tt.role))
			g.Expect(d.bind.fencing).To(Equal(tt.fencing))
		})
	}
}

// TestRefusedSpec: what the service says of a Secret that it cannot use is shown.
func TestRefusedSpec(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	bound(
		&s.agents[0],
		assisted.AgentStateInsufficient,
		assisted.Condition{Type: assisted.ConditionBound, Status: corev1.ConditionTrue},
		assisted.Condition{
			Type: assisted.ConditionSpecSynced, Status: corev1.ConditionFalse, Reason: assisted.ReasonInputError,
			Message: "Secret host-0-fencing not found",
		},
	)
	d := decide(s)
	g.Expect(d.installed.Reason).To(Equal(bootstrapv1.AgentNeedsAttentionReason))
	g.Expect(d.installed.Message).To(ContainSubstring("Secret host-0-fencing not found"))
}
