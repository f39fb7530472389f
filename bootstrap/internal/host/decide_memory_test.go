// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// chapter is one pass of the story of an installation.
type chapter func(*scope)

// inState is a pass that finds the Agent in a state, with a condition Installed.
func inState(state string, status corev1.ConditionStatus, reason string) chapter {
	return func(s *scope) {
		bound(&s.agents[0], state, assisted.Condition{Type: assisted.ConditionInstalled, Status: status, Reason: reason})
		pass(s)
	}
}

// pass decides and says, and carries nothing out.
func pass(s *scope) decision {
	d := decide(s)
	setStatus(s.config, result{decision: &d})
	return d
}

// TestAHostPastInstallingIsNotRebooted plays what becomes of a day-2 host after its installation has begun: whatever its Agent said last,
// the Agent is gone then for days, and at the end a new one registers.
func TestAHostPastInstallingIsNotRebooted(t *testing.T) {
	installing := inState("installing-in-progress", corev1.ConditionFalse, assisted.ReasonInstallationInProgress)
	pending := inState(assisted.AgentStatePendingUserAction, corev1.ConditionFalse, assisted.ReasonInstallationInProgress)
	added := inState("added-to-existing-cluster", corev1.ConditionTrue, "InstallationCompleted")
	failed := inState("error", corev1.ConditionFalse, assisted.ReasonInstallationFailed)
	leaving := func(s *scope) {
		unbound(s, "unbinding-pending-user-action")
		s.agents[0].Status.Conditions = nil
		pass(s)
	}
	unread := func(s *scope) { setStatus(s.config, result{unread: errors.New("no answer")}) }
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		chapters []chapter
		status   metav1.ConditionStatus
		reason   string
		claimed  bool // The new Agent is claimed: nothing was installed.
	}{
		"it is being installed":    {[]chapter{installing}, no, bootstrapv1.AgentInstallingReason, true},
		"nobody saw it again":      {[]chapter{installing, pending}, no, bootstrapv1.AgentPendingUserActionReason, false},
		"it was added":             {[]chapter{installing, added}, yes, bootstrapv1.AgentInstalledReason, false},
		"it booted its image then": {[]chapter{added, pending}, no, bootstrapv1.AgentPendingUserActionReason, false},
		"it failed":                {[]chapter{installing, failed}, no, bootstrapv1.AgentInstallationFailedReason, true},
		"a read failed":            {[]chapter{installing, unread}, no, bootstrapv1.AgentInstallingReason, true},
		"a read failed of one that nobody saw": {
			[]chapter{pending, unread}, no, bootstrapv1.AgentPendingUserActionReason, false,
		},
		"a read failed of one that had failed": {
			[]chapter{failed, unread}, no, bootstrapv1.AgentInstallationFailedReason, true,
		},
		"the service does not know its state": {
			[]chapter{installing, inState("installing-in-progress", corev1.ConditionUnknown, "NotAvailable")},
			no, bootstrapv1.AgentInstallingReason, true,
		},
		"it was cancelled": {
			[]chapter{installing, inState("cancelled", corev1.ConditionUnknown, "Unknown")}, no, bootstrapv1.AgentInstallingReason, true,
		},
		"it was taken off":                         {[]chapter{installing, leaving}, no, bootstrapv1.AgentInstallingReason, true},
		"it was taken off when nobody had seen it": {[]chapter{pending, leaving}, no, bootstrapv1.AgentPendingUserActionReason, false},
		"the state of an installed one is not known": {
			[]chapter{added, inState("added-to-existing-cluster", corev1.ConditionUnknown, "NotAvailable")},
			yes, bootstrapv1.AgentInstalledReason, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := recognizedWorker()
			for _, play := range test.chapters {
				play(s)
			}
			s.agents = nil
			for range 3 {
				d := pass(s)
				g.Expect(d.reboot || d.wait.cycle || d.wait.boot > 0).To(BeFalse(), d.recognized.Message)
				g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.AgentLostReason))
				g.Expect(conditions.Get(s.config, bootstrapv1.AgentInstalledCondition)).To(HaveValue(And(
					HaveField("Status", test.status), HaveField("Reason", test.reason))))
				s.now = s.now.Add(24 * time.Hour)
			}
			s.agents = discovered().agents
			s.agents[0].Annotations = nil
			d := pass(s)
			g.Expect(d.claim != nil || d.bind != nil).To(Equal(test.claimed), d.recognized.Message)
		})
	}
}

// recognizedWorker is a worker of an installed cluster whose Agent is claimed.
func recognizedWorker() *scope {
	s := booted(24 * time.Hour)
	worker(s)
	completed(s)
	s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
	s.agents = discovered().agents
	return s
}

// TestWhatBeganIsForgotten: a host that waits in the discovery image once more, bound or not, is one whose installation has not begun.
func TestWhatBeganIsForgotten(t *testing.T) {
	for name, again := range map[string]struct {
		play   chapter
		reason string
	}{
		"bound": {inState("discovering", corev1.ConditionFalse, "InstallationNotStarted"), bootstrapv1.AgentBindingReason},
		"unbound": {func(s *scope) {
			unbound(s, "insufficient-unbound")
			s.agents[0].Status.Conditions = nil
			pass(s)
		}, bootstrapv1.AgentDiscoveringReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := recognizedWorker()
			inState("installing-in-progress", corev1.ConditionFalse, assisted.ReasonInstallationInProgress)(s)
			again.play(s)
			g.Expect(conditions.GetReason(s.config, bootstrapv1.AgentInstalledCondition)).To(Equal(again.reason))
			s.agents = nil
			g.Expect(decide(s).reboot).To(BeTrue(), "it is frozen, and nothing is installed on it")
		})
	}
}

// TestAnAgentTakenFromARebootedHost: nobody has seen the host since it was rebooted to its disk, and it waits in the discovery image then.
// It is not bound again, which would write the disk.
func TestAnAgentTakenFromARebootedHost(t *testing.T) {
	g := NewWithT(t)
	s := booted(24 * time.Hour)
	worker(s)
	completed(s)
	s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
	s.agents = discovered().agents
	inState(assisted.AgentStatePendingUserAction, corev1.ConditionFalse, assisted.ReasonInstallationInProgress)(s)
	unbound(s, assisted.AgentStateKnownUnbound)
	s.agents[0].Status.Conditions = nil
	d := pass(s)
	g.Expect(d.bind).To(BeNil())
	installed := conditions.Get(s.config, bootstrapv1.AgentInstalledCondition)
	g.Expect(installed.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(installed.Reason).To(Equal(bootstrapv1.AgentPendingUserActionReason))
	g.Expect(installed.Message).To(ContainSubstring("delete Machine m-0"))
}
