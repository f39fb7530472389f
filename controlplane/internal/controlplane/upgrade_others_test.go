// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// TestUpgradeBySomebodyElse is followed, and never fought (DESIGN D30).
func TestUpgradeBySomebodyElse(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.releases.requestOutOfBand(releasePatch)
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Upgrade.Channel = "fast-4.20" })
	w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeInProgressReason))
	g.Expect(w.message(controlplanev1.UpgradingCondition)).To(ContainSubstring("The cluster goes to 4.20.8"))
	w.settleUpgrade(nil, func() bool { return w.controlPlane().Status.DistributionVersion == releasePatch.Version })
	for range 5 {
		w.live(nil)
	}
	g.Expect(conditions.IsFalse(w.controlPlane(), controlplanev1.VersionsMatchCondition)).To(BeTrue())
	g.Expect(w.message(controlplanev1.VersionsMatchCondition)).
		To(Equal("The cluster runs release 4.20.8, and spec.distributionVersion is 4.20.4: set spec.distributionVersion to 4.20.8 " +
			"and spec.version to v1.33.6"))
	g.Expect(w.releases.writes).To(BeZero())
	w.wantRelease(releasePatch)
	w.settleUpgrade(nil, w.upgraded(releasePatch))
	g.Expect(conditions.IsTrue(w.controlPlane(), controlplanev1.VersionsMatchCondition)).To(BeTrue())
	g.Expect(w.releases.version.Spec.DesiredUpdate).To(Equal(&configv1.Update{Version: releasePatch.Version, Image: releasePatch.Image}))
	g.Expect(w.releases.version.Spec.Channel).To(Equal("fast-4.20"), "the cluster has what is wanted, and its channel is the user's again")
	g.Expect(w.releases.writes).To(Equal(1))
}

// TestUpgradeThatWasLeft: a release that the cluster was taken back from is only asked for again when a user says so.
func TestUpgradeThatWasLeft(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.wantRelease(releasePatch)
	w.settleUpgrade(nil, w.upgraded(releasePatch))
	w.releases.requestOutOfBand(releaseInstalled)
	w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeInterruptedReason))
	writes := w.releases.writes
	for range 5 {
		w.live(nil)
	}
	g.Expect(w.releases.writes).To(Equal(writes))
	w.askAgain()
	w.settleUpgrade(nil, w.upgraded(releasePatch))
	g.Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RetryUpgradeAnnotation))
}

// askAgain is a user who wants the cluster to be asked for the release once more.
func (w *world) askAgain() {
	annotations := w.controlPlane().Annotations
	annotations[controlplanev1.RetryUpgradeAnnotation] = ""
	w.annotate(annotations)
}

// still lets the cluster live for some steps, in which the manager may not write to it.
func (w *world) still(why string) {
	w.t.Helper()
	writes, spec := w.releases.writes, w.releases.version.Spec
	for range 5 {
		w.live(nil)
	}
	g := NewWithT(w.t)
	g.Expect(w.releases.writes).To(Equal(writes), why)
	g.Expect(w.releases.version.Spec).To(Equal(spec), why)
}

// TestRequestThatIsWithdrawn in the cluster, or replaced by another one that it does not take, is made again when the user says so.
func TestRequestThatIsWithdrawn(t *testing.T) {
	for name, tc := range map[string]struct {
		withdraw func(*worldReleases)
		message  string
	}{
		"withdrawn": {(*worldReleases).withdraw, "asks for no release now"},
		"replaced": {func(u *worldReleases) {
			u.requestOutOfBand(upgrade.Release{Version: releasePatch.Version, Image: releaseRisky.Image})
		}, "asks for 4.20.8 now"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := upgradable(t)
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = releaseUnsigned.Image })
			w.wantRelease(releaseUnsigned)
			w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeReleaseNotAcceptedReason))
			g.Expect(w.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RequestedReleaseAnnotation,
				fmt.Sprintf(`{"version":"4.20.9","image":%q}`, releaseUnsigned.Image)))
			tc.withdraw(w.releases)
			w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeInterruptedReason))
			g.Expect(w.message(controlplanev1.UpgradingCondition)).To(ContainSubstring(tc.message))
			w.still("nobody has asked for it again")
			w.askAgain()
			_, digest, _ := strings.Cut(releaseUnsigned.Image, "@")
			w.releases.model.Knobs.Signatures = []string{digest}
			w.settleUpgrade(nil, w.upgraded(releaseUnsigned))
			g.Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RetryUpgradeAnnotation))
		})
	}
}

// TestAnotherClusterDuringUpgrade: somebody has put the kubeconfig of another cluster into the Secret. Nothing is written to that cluster,
// and nothing is told of it.
func TestAnotherClusterDuringUpgrade(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.releases.version.Spec.ClusterID, w.releases.version.Status.History[0].Version = "other", "4.20.9"
	before := w.controlPlane().Status
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Upgrade.Channel, s.Upgrade.Acknowledgements = "fast-4.21", []string{"ack-4.20-removals-in-4.21"}
	})
	w.wantRelease(releaseMinor)
	result := w.reconcile()
	g.Expect(result.RequeueAfter).To(Equal(conflictRetryInterval), "no watch tells that the Secret leads to the right cluster again")
	g.Expect(w.releases.writes).To(BeZero())
	cp := w.controlPlane()
	g.Expect(conditions.Get(cp, controlplanev1.UpgradingCondition)).To(HaveField("Status", metav1.ConditionUnknown))
	g.Expect(conditions.GetReason(cp, controlplanev1.UpgradingCondition)).To(Equal(controlplanev1.UpgradeOtherClusterReason))
	g.Expect(w.message(controlplanev1.UpgradingCondition)).To(Equal("Cluster other answers, and 3c1d was installed: look at Secret " +
		"c-kubeconfig"))
	g.Expect(cp.Status.DistributionVersion).To(Equal(before.DistributionVersion))
	g.Expect(conditions.IsTrue(cp, controlplanev1.VersionsMatchCondition)).To(BeTrue(), "as it was")
	w.releases.version.Spec.ClusterID = clusterID
	w.settleUpgrade(nil, w.upgraded(releaseMinor))
}

// TestConnectionIsLostDuringUpgrade: what was known stays, and the release is not asked for anew.
func TestConnectionIsLostDuringUpgrade(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.wantRelease(releasePatch)
	w.settleUpgrade(nil, func() bool { return w.machines()[0].Status.NodeInfo.KubeletVersion == releasePatch.KubeletVersion })
	before := w.controlPlane()
	w.installed.unreachable = true
	w.still("there is no connection")
	cp := w.controlPlane()
	for _, condition := range []string{controlplanev1.UpgradingCondition, controlplanev1.VersionsMatchCondition} {
		g.Expect(conditions.Get(cp, condition)).To(Equal(conditions.Get(before, condition)))
	}
	g.Expect(cp.Status.Upgrade).To(Equal(before.Status.Upgrade))
	w.installed.unreachable = false
	w.settleUpgrade(nil, w.upgraded(releasePatch))
	g.Expect(w.releases.writes).To(Equal(1))
}

// TestGatesThatCannotBeRead: the cluster is not asked for another minor version on half the facts, and what is known of it is told.
func TestGatesThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.acknowledge("ack-4.20-removals-in-4.21")
	w.releases.unread = errors.New("read ConfigMap openshift-config-managed/admin-gates: forbidden")
	w.wantRelease(releaseMinor)
	g.Expect(w.try()).To(MatchError(ContainSubstring("admin-gates: forbidden")), "it is tried again")
	g.Expect(conditions.GetReason(w.controlPlane(), controlplanev1.UpgradingCondition)).To(Equal(controlplanev1.UpgradeNotAcknowledgedReason))
	g.Expect(w.message(controlplanev1.UpgradingCondition)).To(ContainSubstring("admin-gates: forbidden"))
	w.still("the gates are not known")
	w.releases.unread = nil
	w.settleUpgrade(nil, w.upgraded(releaseMinor))
}

// TestImageSetOfSomebodyElse wakes the control plane that names it: its upgrade may wait for the image.
func TestImageSetOfSomebodyElse(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.ImageSetRef.Name = "set" })
	set := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	g.Expect(w.r.ofImageSet(context.Background(), set)).To(HaveLen(1))
	set.Name = "other"
	g.Expect(w.r.ofImageSet(context.Background(), set)).To(BeEmpty())
	w.wantRelease(releasePatch)
	w.releases.model.Knobs.Unreachable = true
	w.releases.tick()
	w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeImageUnknownReason))
	g.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", conflictRetryInterval), "the watch tells")
}
