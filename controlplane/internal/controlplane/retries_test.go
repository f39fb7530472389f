// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// failing is a world whose first attempt has just failed, and that may have so many retries.
func failing(t *testing.T, retries int32) *world {
	t.Helper()
	w := newWorld(t, 3, 1)
	w.followMachineClock()
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.Retries = &retries })
	w.failAt = 3
	w.untilFailed()
	return w
}

func (w *world) untilFailed() {
	w.t.Helper()
	w.run(nil, func() bool { return w.installStatus().Phase == controlplanev1.InstallPhaseFailed })
}

func (w *world) installStatus() controlplanev1.InstallStatus { return w.controlPlane().Status.Install }

// retried lets the attempt that is due begin, and the hosts of the one before go.
func (w *world) retried() {
	w.t.Helper()
	w.reconcile()
	w.reconcile()
	w.forgotten()
}

// forgotten power-cycles the hosts once the AgentClusterInstall is gone, so that assisted-service begins anew with the next one.
func (w *world) forgotten() {
	w.t.Helper()
	if w.install() == nil {
		w.powerCycle()
	}
}

// TestRetriesByThemselves: an installation that fails again and again begins anew as often as the user allows, after waits that double, and
// ends in a condition.
func TestRetriesByThemselves(t *testing.T) {
	g := NewWithT(t)
	w := failing(t, 3)
	for attempt, wait := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute} {
		n := int32(attempt + 1)
		before := w.uidsOfMachines()
		left := w.reconcile().RequeueAfter
		due := w.now.Add(left)
		// run moves the clock by a minute after the step in which the failure was recorded.
		g.Expect(left).To(Equal(wait - time.Minute))
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RetryWaitingReason))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(
			ContainSubstring("(attempt %d of 4; the next begins at %s)", n, due.UTC().Format(time.RFC3339)))
		g.Expect(*w.installStatus().Attempt).To(Equal(n))
		g.Expect(w.installStatus().NextRetryTime.UTC()).To(Equal(due.UTC()))
		g.Expect(w.recorded()).To(ContainElement(controlplanev1.EventInstallationFailed))
		w.now = due.Add(-time.Second)
		w.reconcile()
		g.Expect(w.uidsOfMachines()).To(Equal(before))
		w.now = due
		w.retried()
		g.Expect(w.attempt()).To(Equal(fmt.Sprint(n + 1)))
		g.Expect(w.recorded()).To(ContainElement(controlplanev1.EventRetryStarted))
		g.Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.InstallationFailedAnnotation))
		g.Expect(w.installStatus().NextRetryTime).To(BeZero())
		for name, uid := range w.uidsOfMachines() {
			g.Expect(uid).NotTo(Equal(before[name]), "attempt %d: the host of %s is power-cycled", n, name)
		}
		w.untilFailed()
	}
	w.now = w.now.Add(24 * time.Hour)
	g.Expect(w.reconcile().RequeueAfter).To(BeZero())
	g.Expect(w.attempt()).To(Equal("4"))
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RetriesExhaustedReason))
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(And(
		ContainSubstring("attempt 4 of 4"), ContainSubstring(controlplanev1.RetryInstallationAnnotation)))
	cp := w.controlPlane()
	cp.Annotations[controlplanev1.RetryInstallationAnnotation] = ""
	w.must(w.client.Update(context.Background(), cp))
	w.failAt = 0
	w.retried()
	w.run(nil, w.available)
	g.Expect(*w.installStatus().Attempt).To(Equal(int32(5)))
}

// TestRetryThatSucceeds: nothing of a retry is left when it succeeds, and the wait is not shortened by a new manager.
func TestRetryThatSucceeds(t *testing.T) {
	g := NewWithT(t)
	w := failing(t, 1)
	w.now = w.now.Add(w.reconcile().RequeueAfter)
	w.retried()
	w.failAt = 0
	w.run(nil, w.available)
	g.Expect(w.attempt()).To(Equal("2"))
	w.now = w.now.Add(24 * time.Hour)
	w.api.Last = w.now
	g.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", 24*time.Hour), "nothing but the credential of the cluster is due some day")
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstalledReason))
}

// TestRetryDoesNotBegin: a change that comes before the next attempt was to begin keeps it from beginning, and the condition Installed says
// why.
func TestRetryDoesNotBegin(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*world)
		reason, told string
	}{
		"the API of the cluster answers": {
			func(w *world) { w.api.Last = w.now }, controlplanev1.InstallationFailedReason, "the API of the cluster has answered",
		},
		"the user holds it": {func(w *world) {
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.HoldInstallation = new(true) })
		}, controlplanev1.InstallationFailedReason, "spec.install.holdInstallation is true"},
		"the user wants no more": {func(w *world) {
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.Retries = nil })
		}, controlplanev1.InstallationFailedReason, "To install again, set annotation"},
		"the Cluster was paused, and the cache does not show it": {func(w *world) {
			w.r.APIReader = w.intercepted(pausedCluster())
		}, controlplanev1.RetryingReason, "the next attempt begins"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := failing(t, 3)
			before := w.uidsOfMachines()
			w.now = w.now.Add(w.reconcile().RequeueAfter)
			test.change(w)
			for range 3 {
				w.reconcile()
			}
			g.Expect(w.attempt()).To(Equal("1"))
			g.Expect(w.uidsOfMachines()).To(Equal(before))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(test.reason))
			g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring(test.told))
		})
	}
	t.Run("also when the API has answered a manager that has ended since", func(t *testing.T) {
		g := NewWithT(t)
		w := failing(t, 3)
		w.api.Last = w.now
		w.reconcile()
		w.api.Last = time.Time{}
		w.now = w.now.Add(time.Hour)
		w.reconcile()
		g.Expect(w.attempt()).To(Equal("1"))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("the API of the cluster has answered"))
	})
}

// TestNoRetryAfterFinalizing: an installation whose hosts were installed when it failed is not begun again by itself, although
// assisted-service has turned them to errors and the API of the cluster has never answered. The cluster may be repairable, and hold data.
func TestNoRetryAfterFinalizing(t *testing.T) {
	for name, test := range map[string]struct {
		// seen: the manager runs while the operators are installed; since is what happens after the failure.
		seen  bool
		since func(*world)
		told  string
	}{
		"the manager has seen the phase":                               {true, nil, "the control-plane hosts were installed"},
		"the manager has seen the phase, and the service has no hosts": {true, forgetProgress, "the control-plane hosts were installed"},
		"the manager was away":                                         {false, nil, "the control-plane hosts were installed"},
		"the manager was away, and the percentage is lost": {false, forgetPercentage,
			"the control-plane host of Machine cp-0 was installed"},
		"the manager was away, and the service has no hosts": {false, forgetProgress,
			"assisted-service does not say whether the control-plane host of Machine cp-0 was installed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 3, 1)
			w.followMachineClock()
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.Retries = new(int32(1)) })
			w.failAt = stageFinalizing + 1
			w.run(nil, func() bool { return w.installStatus().Phase == controlplanev1.InstallPhaseInstalling })
			for !w.failed() {
				w.service()
				if test.seen {
					w.reconcile()
				}
			}
			if test.since != nil {
				test.since(w)
			}
			before := w.uidsOfMachines()
			w.reconcile()
			settled := w.controlPlane()
			for range 3 {
				w.now = w.now.Add(24 * time.Hour)
				g.Expect(w.reconcile().RequeueAfter).To(BeZero(), "nothing is waited for")
			}
			g.Expect(w.controlPlane()).To(Equal(settled), "nothing is written any more")
			g.Expect(w.attempt()).To(Equal("1"))
			g.Expect(w.uidsOfMachines()).To(Equal(before))
			g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventRetryStarted))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstallationFailedReason))
			g.Expect(w.message(controlplanev1.InstalledCondition)).To(And(
				HavePrefix("The installation failed: Cluster installation timeout while finalizing (attempt 1 of 2; no other begins by itself: "+
					test.told),
				ContainSubstring("the cluster may be repairable, and may hold data). To install again, "),
				ContainSubstring(controlplanev1.RetryInstallationAnnotation)))
			cp := w.controlPlane()
			cp.Annotations[controlplanev1.RetryInstallationAnnotation] = ""
			w.must(w.client.Update(context.Background(), cp))
			w.retried()
			g.Expect(w.attempt()).To(Equal("2"), "the user decides")
			g.Expect(w.installStatus().FinalizingTime).To(BeZero(), "what is remembered is about the attempt before")
		})
	}
}

// forgetPercentage lets the service lose how far the installation is, and forgetProgress also the hosts of the installation.
func forgetPercentage(w *world) {
	w.forgetful = true
	w.report(w.install())
}

func forgetProgress(w *world) {
	forgetPercentage(w)
	w.must(w.client.DeleteAllOf(context.Background(), &assisted.Agent{}, client.InNamespace(namespace)))
}

// TestRetryWaitsForANewManager: one that comes when the wait is over asks the API of the cluster first.
func TestRetryWaitsForANewManager(t *testing.T) {
	for name, tt := range map[string]struct {
		answers bool
		attempt string
	}{"the API does not answer": {false, "2"}, "the API answers": {true, "1"}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := failing(t, 1)
			before := w.uidsOfMachines()
			w.reconcile()
			w.now, w.r.leading = w.now.Add(time.Hour), manager.Leadership{}
			g.Expect(w.reconcile().RequeueAfter).To(Equal(w.r.RemoteConditionsGracePeriod))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RetryWaitingReason))
			if tt.answers {
				w.api.Last = w.now
			}
			w.now = w.now.Add(w.r.RemoteConditionsGracePeriod)
			w.reconcile()
			g.Expect(w.attempt()).To(Equal(tt.attempt))
			g.Expect(w.uidsOfMachines()).To(Equal(before))
		})
	}
}

// pausedCluster shows the Cluster as one that was just paused.
func pausedCluster() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if cluster, ok := o.(*clusterv1.Cluster); ok {
				cluster.Spec.Paused = new(true)
			}
			return err
		},
	}
}
