// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestProgressHasOneText: each stage of an installation, or its percentage, would be a write of ours and one of Cluster API's.
func TestProgressHasOneText(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	bound(&s.agents[0], "installing-in-progress", assisted.Condition{
		Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationInProgress,
	})
	var texts []string
	for _, stage := range []string{
		"", "Starting installation", "Waiting for bootkube", "Writing image to disk", "Rebooting", "Waiting for ignition", "Joined", "Done",
	} {
		s.agents[0].Status.Progress.CurrentStage = stage
		installed := decide(s).installed
		g.Expect(installed.Reason).To(Equal(bootstrapv1.AgentInstallingReason))
		texts = append(texts, installed.Message)
	}
	g.Expect(texts[0]).To(HavePrefix("Agent a-0: the host is being installed"))
	g.Expect(slices.Compact(texts)).To(HaveLen(1))
}

// TestRefusedBind: while the cluster takes hosts, a bind that assisted-service refuses is asked for once more. When that is refused too,
// AgentInstalled has the reason NeedsAttention and the service's message.
func TestRefusedBind(t *testing.T) {
	const refusal = "architecture mismatch"
	nudged := func(value string) func(*scope) {
		return func(s *scope) { s.agents[0].Annotations[bootstrapv1.BindNudgeAnnotation] = value }
	}
	for name, test := range map[string]struct {
		changes []func(*scope)
		nudge   bool
		reason  string
	}{
		"day 1 is open":              {nudge: true, reason: bootstrapv1.AgentBindingReason},
		"day 1 is open, asked again": {changes: []func(*scope){nudged("install-uid/Waiting")}, reason: bootstrapv1.AgentNeedsAttentionReason},
		"the cluster takes no hosts": {changes: []func(*scope){func(s *scope) {
			s.install.Status.DebugInfo.State = assisted.ClusterStateInstalling
			s.install.Status.Conditions[0].Reason = "InstallationInProgress"
		}}, reason: bootstrapv1.WaitingForClusterReason},
		"there is no cluster": {changes: []func(*scope){func(s *scope) { s.install = nil }}, reason: bootstrapv1.WaitingForClusterReason},
		"day 2, asked again on day 1": {changes: []func(*scope){completed, nudged("install-uid/Waiting")}, nudge: true,
			reason: bootstrapv1.AgentBindingReason},
		"day 2, asked again": {changes: []func(*scope){completed, nudged("install-uid/Completed")},
			reason: bootstrapv1.AgentNeedsAttentionReason},
		"day 2, asked again, and its disk is owed": {changes: []func(*scope){completed, nudged("install-uid/Completed"), func(s *scope) {
			s.agents[0].Annotations[bootstrapv1.InstallationDiskAnnotation] = "disk-1"
		}}, reason: bootstrapv1.AgentNeedsAttentionReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			bound(&s.agents[0], assisted.AgentStateKnownUnbound,
				assisted.Condition{Type: assisted.ConditionBound, Status: corev1.ConditionFalse},
				assisted.Condition{
					Type: assisted.ConditionSpecSynced, Status: corev1.ConditionFalse, Reason: assisted.ReasonInputError, Message: refusal,
				})
			for _, change := range test.changes {
				change(s)
			}
			d := decide(s)
			g.Expect(d.installed.Reason).To(Equal(test.reason), d.installed.Message)
			g.Expect(d.nudge != nil).To(Equal(test.nudge))
			g.Expect(d.lookAgain).To(BeZero(), "an event tells")
			if test.reason == bootstrapv1.AgentNeedsAttentionReason {
				g.Expect(d.installed.Message).To(And(ContainSubstring("Agent a-0"), ContainSubstring(refusal)))
			}
		})
	}
}
