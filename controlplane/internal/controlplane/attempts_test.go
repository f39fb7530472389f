// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

func (w *world) annotate(annotations map[string]string) {
	w.t.Helper()
	cp := w.controlPlane()
	cp.Annotations = annotations
	w.must(w.client.Update(context.Background(), cp))
}

// TestLostAttemptNumber: somebody replaces the control plane by its manifest, which has no annotations, while attempt 2 runs.
func TestLostAttemptNumber(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 1)
	w.failAt = 3
	w.run(nil, func() bool {
		return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
	})
	w.annotate(map[string]string{controlplanev1.RetryInstallationAnnotation: ""})
	w.failAt = 0
	w.reconcile()
	w.reconcile()
	w.powerCycle()
	w.run(nil, func() bool { return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallingReason })
	before := w.uidsOfMachines()
	for _, annotations := range []map[string]string{nil, {controlplanev1.InstallAttemptAnnotation: "1"},
		{controlplanev1.InstallAttemptAnnotation: "x"}} {
		w.annotate(annotations)
		for range 3 {
			w.reconcile()
		}
		g.Expect(w.attempt()).To(Equal("2"))
		g.Expect(w.install()).NotTo(BeNil())
		g.Expect(w.uidsOfMachines()).To(Equal(before))
	}
	w.run(nil, w.available)
}

// TestInstallationThatVanishesAgainAndAgain: attempts that begin by themselves are delayed more and more, and end.
func TestInstallationThatVanishesAgainAndAgain(t *testing.T) {
	g := NewWithT(t)
	w := installing(t, 3, 1)
	restart := func() {
		w.reconcile()
		w.reconcile()
		w.powerCycle()
		w.run(nil, func() bool { return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallingReason })
	}
	w.vanish(w.install())
	restart()
	g.Expect(w.attempt()).To(Equal("2"))
	begun := w.now
	for _, attempt := range []string{"3", "4"} {
		w.now = begun // As fast as can be.
		before := w.uidsOfMachines()
		w.vanish(w.install())
		left := w.reconcile().RequeueAfter
		g.Expect(left).To(BeNumerically(">", 0))
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RetryWaitingReason))
		g.Expect(w.controlPlane().Status.Install.NextRetryTime.UTC()).To(Equal(w.now.Add(left).UTC()))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("begins at " + w.now.Add(left).UTC().Format(time.RFC3339)))
		g.Expect(w.uidsOfMachines()).To(Equal(before))
		w.now = w.now.Add(left)
		begun = w.now
		restart()
		g.Expect(w.attempt()).To(Equal(attempt))
	}
	w.vanish(w.install())
	w.now = w.now.Add(24 * time.Hour)
	w.reconcile()
	g.Expect(w.attempt()).To(Equal("4"))
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RetriesExhaustedReason))
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring(controlplanev1.RetryInstallationAnnotation))
	g.Expect(w.controlPlane().Status.Install).To(Equal(controlplanev1.InstallStatus{Attempt: new(int32(4))}))
	cp := w.controlPlane()
	cp.Annotations[controlplanev1.RetryInstallationAnnotation] = ""
	w.must(w.client.Update(context.Background(), cp))
	restart()
	g.Expect(w.attempt()).To(Equal("5"))
	g.Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.LostInstallationsAnnotation))
}
