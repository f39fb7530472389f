// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// An Agent that only has to be discovered is claimed by the patch that binds it; one that waits for anything else is claimed at once.
func TestWhenTheClaimWaitsForTheBind(t *testing.T) {
	tests := []struct {
		name    string
		change  func(s *scope)
		reason  string
		claimed bool
	}{
		{name: "it is discovered", change: func(*scope) {}, reason: bootstrapv1.AgentDiscoveringReason},
		{name: "a check fails", change: func(s *scope) {
			s.agents[0].Status.ValidationsInfo = common.ValidationsStatus{
				"network": {{ID: "ntp-synced", Status: "failure", Message: "no NTP server"}},
			}
		}, reason: bootstrapv1.AgentValidationsFailingReason, claimed: true},
		{name: "the service does not hear from it", change: func(s *scope) {
			s.agents[0].Status.Conditions = []assisted.Condition{{Type: assisted.ConditionConnected, Status: corev1.ConditionFalse}}
		}, reason: bootstrapv1.AgentDisconnectedReason, claimed: true},
		{
			name:    "the cluster takes no hosts",
			change:  func(s *scope) { s.install = nil },
			reason:  bootstrapv1.WaitingForClusterReason,
			claimed: true,
		},
		{name: "it has another architecture", change: func(s *scope) { s.agents[0].Status.Inventory.CPU.Architecture = "s390x" },
			reason: bootstrapv1.ArchitectureMismatchReason, claimed: true},
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
			g.Expect(d.record).To(Equal("a-0"), "from now on its loss is noticed")
			g.Expect(d.claim != nil).To(Equal(tt.claimed))
			g.Expect(d.bind).To(BeNil())
		})
	}
}

// A host whose claim waits is as lost without its Agent as any other, and takes its Agent along.
func TestUnclaimedIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	s.agents[0].Annotations, s.agents[0].Status.DebugInfo.State = nil, "discovering-unbound"
	s.machine.DeletionTimestamp = &metav1.Time{Time: s.now}
	g.Expect(leaves(s, &s.agents[0])).To(BeTrue())
	s.machine.DeletionTimestamp, s.agents = nil, nil
	g.Expect(decide(s).reboot).To(BeTrue())
}
