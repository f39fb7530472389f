// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// TestClaimedAtOnce: an Agent is claimed as soon as it is recognised and examined, whatever it waits for. A second machine that registers
// as the same Agent meanwhile is kept out by the claim, and by nothing else.
func TestClaimedAtOnce(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *scope)
		reason string
	}{
		{name: "it may not be bound", change: func(s *scope) { s.agents[0].Status.DebugInfo.State = "insufficient-unbound" },
			reason: bootstrapv1.AgentDiscoveringReason},
		{name: "a check fails", change: func(s *scope) {
			s.agents[0].Status.DebugInfo.State = "insufficient-unbound"
			s.agents[0].Status.ValidationsInfo = common.ValidationsStatus{
				"network": {{ID: "ntp-synced", Status: "failure", Message: "no NTP server"}},
			}
		}, reason: bootstrapv1.AgentValidationsFailingReason},
		{name: "the service does not hear from it", change: func(s *scope) {
			s.agents[0].Status.DebugInfo.State = "disconnected-unbound"
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
			s.agents[0].Annotations = nil
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

// TestNotClaimedBeforeItIsExamined: for a host that assisted-service examines in the next seconds nothing is written, not even that it is
// recognised. Then one patch claims and binds its Agent; a claim of its own would be refused as outdated, or cost one more write of each
// object.
func TestNotClaimedBeforeItIsExamined(t *testing.T) {
	young := func(s *scope) {
		s.now = later.Add(30 * time.Second)
		fact.Waiting(bootstrapv1.WaitingForAgentReason, "not yet").Set(s.config, bootstrapv1.HostRecognizedCondition)
	}
	tests := map[string]struct {
		state  string
		change func(s *scope)
		told   string
		again  time.Duration
	}{
		"its hardware was just reported": {state: assisted.AgentStateDiscoveringUnbound, change: young, again: examineTime - 30*time.Second},
		"its InfraEnv says who it is": {change: func(s *scope) {
			young(s)
			s.config.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
		}, again: examineTime - 30*time.Second},
		"it takes longer than it may": {state: assisted.AgentStateDiscoveringUnbound, change: func(s *scope) {
			young(s)
			s.now = later.Add(examineTime)
		}, told: bootstrapv1.ClaimingAgentReason},
		"something else was told of it": {state: assisted.AgentStateDiscoveringUnbound, change: func(s *scope) {
			young(s)
			fact.Waiting(bootstrapv1.AgentLostReason, "lost").Set(s.config, bootstrapv1.HostRecognizedCondition)
		}, told: bootstrapv1.ClaimingAgentReason},
		"a power cycle was asked for meanwhile": {state: assisted.AgentStateDiscoveringUnbound, change: func(s *scope) {
			record := powerCycle{Machine: s.claim(), Time: s.now, Boot: maxBoots}
			s.host.Annotations = map[string]string{bootstrapv1.PowerCycleAnnotation: record.String()}
		}, told: bootstrapv1.ClaimingAgentReason},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			s.agents[0].Annotations, s.agents[0].Status.DebugInfo.State = nil, tt.state
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
			tt.change(s)
			d := decide(s)
			g.Expect(d.recognized.Reason).To(Equal(tt.told))
			if tt.told != "" {
				g.Expect(d.recognized.Message).To(ContainSubstring("a-0"))
			}
			g.Expect(d.installed.Reason).To(Equal(bootstrapv1.WaitingForRecognitionReason))
			g.Expect(d.claim).To(BeNil())
			g.Expect(d.bind).To(BeNil())
			g.Expect(d.record + d.disk).To(BeEmpty())
			g.Expect(d.wait).To(BeZero(), "the host has registered: it is not power-cycled")
			g.Expect(d.lookAgain).To(Equal(tt.again))
			s.agents[0].Status.DebugInfo.State = assisted.AgentStateKnownUnbound
			g.Expect(decide(s).bind.claim).To(Equal(s.claim()))
		})
	}
}
