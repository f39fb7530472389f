// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestClaimedAtOnce: an Agent is claimed as soon as it is recognised, whatever it waits for. A second machine that registers as the same
// Agent meanwhile is kept out by the claim, and by nothing else.
func TestClaimedAtOnce(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *scope)
		reason string
	}{
		{name: "it is discovered", change: func(*scope) {}, reason: bootstrapv1.AgentDiscoveringReason},
		{name: "a check fails", change: func(s *scope) {
			s.agents[0].Status.ValidationsInfo = common.ValidationsStatus{
				"network": {{ID: "ntp-synced", Status: "failure", Message: "no NTP server"}},
			}
		}, reason: bootstrapv1.AgentValidationsFailingReason},
		{name: "the service does not hear from it", change: func(s *scope) {
			s.agents[0].Status.Conditions = []assisted.Condition{{Type: assisted.ConditionConnected, Status: corev1.ConditionFalse}}
		}, reason: bootstrapv1.AgentDisconnectedReason},
		{name: "the cluster takes no hosts", change: func(s *scope) { s.install = nil }, reason: bootstrapv1.WaitingForClusterReason},
		{name: "it has another architecture", change: func(s *scope) { s.agents[0].Status.Inventory.CPU.Architecture = "s390x" },
			reason: bootstrapv1.ArchitectureMismatchReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			s.agents[0].Annotations, s.agents[0].Status.DebugInfo.State = nil, "discovering-unbound"
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
			tt.change(s)
			d := decide(s)
			g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.HostRecognizedReason))
			g.Expect(d.installed.Reason).To(Equal(tt.reason), d.installed.Message)
			g.Expect(d.record).To(Equal("a-0"), "its loss is noticed")
			g.Expect(d.claim).NotTo(BeNil())
			g.Expect(d.bind).To(BeNil())
		})
	}
}
