// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// TestUpgradeToFive: a cluster comes to OpenShift 5 by every minor version up to one that leads there, and not before.
func TestUpgradeToFive(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	before := w.machineUIDs()
	w.wantRelease(releaseFive)
	w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeNotPossibleReason))
	g.Expect(w.message(controlplanev1.UpgradingCondition)).To(ContainSubstring("5.0.1 is too far ahead, and 4.21 is next"))
	g.Expect(w.releases.writes).To(BeZero())

	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Upgrade.Channel = "stable-5.0" })
	w.acknowledge("ack-4.20-removals-in-4.21", "ack-4.22-removals-in-5.0")
	for _, release := range []upgrade.Release{releaseMinor, releaseLast, releaseFive} {
		w.wantRelease(release)
		w.settleUpgrade(nil, w.upgraded(release))
		g.Expect(conditions.IsTrue(w.controlPlane(), controlplanev1.VersionsMatchCondition)).To(BeTrue(), release.Version)
	}
	g.Expect(w.machineUIDs()).To(Equal(before))
	g.Expect(w.installed.removed).To(BeEmpty())
}
