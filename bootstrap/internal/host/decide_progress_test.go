// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"strings"
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

// TestFailedHost: while its cluster is installed without it, the message says what to do. A control plane says it of a cluster that failed,
// and the Machine of a Node is not given up.
func TestFailedHost(t *testing.T) {
	const advice = "; the cluster is installed without this host: mend the cause, then delete Machine m-0, so that one in its place joins"
	for name, test := range map[string]struct {
		change func(*scope)
		advice string
	}{
		"the cluster is installed": {completed, advice},
		"the cluster is being installed": {func(s *scope) {
			s.install.Status.DebugInfo.State = assisted.ClusterStateInstalling
			s.install.Status.Conditions[0].Reason = "InstallationInProgress"
		}, ""},
		"there is no cluster": {func(s *scope) { s.install = nil }, ""},
		"it is a Node":        {func(s *scope) { completed(s); s.machine.Status.NodeRef.Name = "m-0" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			bound(&s.agents[0], "error", assisted.Condition{
				Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationFailed,
			})
			s.agents[0].Status.DebugInfo.StateInfo = "Failed - no space left on device"
			test.change(s)
			d := decide(s)
			g.Expect(d.installed.Reason).To(Equal(bootstrapv1.AgentInstallationFailedReason))
			g.Expect(d.installed.Message).To(Equal("Agent a-0: Failed - no space left on device" + test.advice))
		})
	}
}

// TestHostIsNotLetIn: of a host that joins an installed cluster and is not seen there, the message names the Secret by which it is let in.
func TestHostIsNotLetIn(t *testing.T) {
	const secret = "Secret cp-admin-kubeconfig"
	for name, test := range map[string]struct {
		info   string
		change func(*scope)
		told   bool
	}{
		"day 2":                                {"Host timed out when pulling the configuration files.", completed, true},
		"day 1":                                {"Host timed out when pulling the configuration files.", func(*scope) {}, false},
		"day 2, and it boots the wrong medium": {"Expected the host to boot from disk", completed, false},
		"day 2, and it is a Node": {"Host timed out when pulling the configuration files.", func(s *scope) {
			completed(s)
			s.machine.Status.NodeRef.Name = "m-0"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			s.install.Spec.ClusterDeploymentRef.Name = "cp"
			bound(&s.agents[0], assisted.AgentStatePendingUserAction)
			s.agents[0].Status.DebugInfo.StateInfo = test.info
			test.change(s)
			d := decide(s)
			g.Expect(d.installed.Reason).To(Equal(bootstrapv1.AgentPendingUserActionReason))
			g.Expect(d.installed.Message).To(HavePrefix("Agent a-0: " + test.info))
			g.Expect(strings.Contains(d.installed.Message, secret)).To(Equal(test.told), d.installed.Message)
		})
	}
}
