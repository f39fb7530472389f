// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// settleUpgrade lets the cluster live until reached, and returns what changed of its upgrade in which step.
func (w *world) settleUpgrade(order *rand.Rand, reached func() bool) string {
	w.t.Helper()
	return w.tell(order, w.upgradeSummary, reached)
}

// upgrading reports whether the condition Upgrading has a reason.
func (w *world) upgrading(reason string) func() bool {
	return func() bool {
		return conditions.GetReason(w.controlPlane(), controlplanev1.UpgradingCondition) == reason
	}
}

func (w *world) acknowledge(keys ...string) {
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Upgrade.Acknowledgements = keys })
}

// machineUIDs are the UIDs of the Machines, by name.
func (w *world) machineUIDs() map[string]types.UID {
	uids := map[string]types.UID{}
	for _, m := range w.machines() {
		uids[m.Name] = m.UID
	}
	return uids
}

// TestContractUpgrade: a release of the same minor version, and the next minor one, which has to be acknowledged. Every Machine stays.
func TestContractUpgrade(t *testing.T) {
	tell := func(t *testing.T, order *rand.Rand) string {
		t.Helper()
		w := upgradable(t)
		before := w.machineUIDs()
		w.wantRelease(releasePatch)
		story := w.settleUpgrade(order, w.upgraded(releasePatch))
		w.wantRelease(releaseMinor)
		story += "the next minor version\n" + w.settleUpgrade(order, w.upgrading(controlplanev1.UpgradeNotAcknowledgedReason))
		w.acknowledge("ack-4.20-removals-in-4.21")
		story += "acknowledged\n" + w.settleUpgrade(order, w.upgraded(releaseMinor))
		g := NewWithT(t)
		g.Expect(w.machineUIDs()).To(Equal(before))
		g.Expect(w.releases.writes).To(Equal(3), "two releases, and what was acknowledged")
		g.Expect(w.installed.removed).To(BeEmpty())
		return story
	}
	t.Run("E2E-26 two upgrades", func(t *testing.T) { compareStory(t, tell(t, nil)) })
	inRandomOrder(t, "upgrade", 20, func(t *testing.T, order *rand.Rand) { tell(t, order) })
}

// TestUpgradeIsRefused: what keeps a cluster from a release, and how it comes to it.
func TestUpgradeIsRefused(t *testing.T) {
	image := func(image string) func(*world) {
		return func(w *world) {
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = image })
		}
	}
	for name, tc := range map[string]struct {
		release upgrade.Release
		before  func(*world)
		reason  string
		message string
		// mend lets it go on; nil when the release is one that nobody should get.
		mend func(*world)
	}{
		"not signed": {
			releaseUnsigned, image(releaseUnsigned.Image), controlplanev1.UpgradeReleaseNotAcceptedReason, "The update cannot be verified",
			func(w *world) {
				_, digest, _ := strings.Cut(releaseUnsigned.Image, "@")
				w.releases.model.Knobs.Signatures = []string{digest}
			},
		},
		"version and image disagree": {
			releasePatch, image(releaseRisky.Image), controlplanev1.UpgradeReleaseNotAcceptedReason, "4.20.7", image(releasePatch.Image),
		},
		"known risks": {
			releaseRisky, nil, controlplanev1.UpgradeRisksNotAcceptedReason, "* DisksAreEaten: disks are eaten", func(w *world) {
				w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
					s.Upgrade.AcceptedRisks = []controlplanev1.UpgradeRisk{{Name: "DisksAreEaten"}}
				})
			},
		},
		"not upgradeable": {
			releaseMinor, func(w *world) {
				w.acknowledge("ack-4.20-removals-in-4.21")
				w.releases.model.Knobs.NotUpgradeable = map[string]string{"network": "the network is old"}
			}, controlplanev1.UpgradeNotUpgradeableReason, "the network is old",
			func(w *world) { w.releases.model.Knobs.NotUpgradeable = nil },
		},
		"not acknowledged": {
			releaseMinor, nil, controlplanev1.UpgradeNotAcknowledgedReason, "* ack-4.20-removals-in-4.21: APIs are gone in 4.21",
			func(w *world) { w.acknowledge("ack-4.20-removals-in-4.21") },
		},
		"the graph is out of reach, and nobody tells the digest": {
			releasePatch, func(w *world) { w.releases.model.Knobs.Unreachable = true; w.releases.tick() }, controlplanev1.UpgradeImageUnknownReason,
			"The digest of release 4.20.8 is not known", image(releasePatch.Image),
		},
		"half an edit": {
			upgrade.Release{Version: releaseMinor.Version, KubeletVersion: kubelet}, func(w *world) {
				w.acknowledge("ack-4.20-removals-in-4.21")
			}, controlplanev1.UpgradeWaitingForVersionsReason, "Release 4.21.2 has Kubernetes 1.34, not v1.33.4",
			func(w *world) { w.wantRelease(releaseMinor) },
		},
		"the other half": {
			upgrade.Release{Version: releaseInstalled.Version, KubeletVersion: releaseMinor.KubeletVersion}, func(w *world) {
				w.acknowledge("ack-4.20-removals-in-4.21")
			}, controlplanev1.UpgradeWaitingForVersionsReason, "Release 4.20.4 has Kubernetes 1.33, not v1.34.3",
			func(w *world) { w.wantRelease(releaseMinor) },
		},
		"two minor versions": {
			upgrade.Release{Version: "4.22.0", KubeletVersion: "v1.35.1"}, nil, controlplanev1.UpgradeNotPossibleReason, "4.22.0 is too far ahead",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := upgradable(t)
			if tc.before != nil {
				tc.before(w)
			}
			w.wantRelease(tc.release)
			w.settleUpgrade(nil, w.upgrading(tc.reason))
			for range 5 {
				w.live(nil)
			}
			g.Expect(w.message(controlplanev1.UpgradingCondition)).To(ContainSubstring(tc.message))
			g.Expect(w.controlPlane().Status.DistributionVersion).To(Equal(releaseInstalled.Version))
			if tc.mend == nil {
				g.Expect(w.releases.writes).To(BeZero())
				return
			}
			tc.mend(w)
			wanted, _ := worldCatalogue().ByVersion(w.controlPlane().Spec.DistributionVersion)
			w.settleUpgrade(nil, w.upgraded(wanted))
		})
	}
}

// TestUpgradeInTrouble: the condition Upgrading names what is wrong, and the provider writes nothing more to the ClusterVersion.
func TestUpgradeInTrouble(t *testing.T) {
	for name, tc := range map[string]struct {
		trouble         func(*worldReleases)
		reason, message string
		end             func(*worldReleases)
	}{
		"an operator is degraded": {
			func(u *worldReleases) { u.model.Knobs.Degraded = map[string]string{"network": "no route"} },
			controlplanev1.UpgradeFailingReason, "network", func(u *worldReleases) { u.model.Knobs.Degraded = nil },
		},
		"an operator is slow": {
			func(u *worldReleases) { u.model.Knobs.Stuck = map[string]bool{"network": true} },
			controlplanev1.UpgradeStalledReason, "network", func(u *worldReleases) { u.model.Knobs.Stuck = nil },
		},
		"the pool is paused": {
			func(u *worldReleases) { u.paused = map[string]bool{upgrade.Master: true} },
			controlplanev1.UpgradeStalledReason, "MachineConfigPool master is paused", func(u *worldReleases) { u.paused = nil },
		},
		"the pool is degraded": {
			func(u *worldReleases) {
				u.model.Knobs.PoolDegraded = map[string]string{upgrade.Master: "unexpected on-disk state"}
			},
			controlplanev1.UpgradeFailingReason, "unexpected on-disk state", func(u *worldReleases) { u.model.Knobs.PoolDegraded = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := upgradable(t)
			w.wantRelease(releasePatch)
			w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeInProgressReason))
			tc.trouble(w.releases)
			w.settleUpgrade(nil, w.upgrading(tc.reason))
			g.Expect(w.message(controlplanev1.UpgradingCondition)).To(ContainSubstring(tc.message))
			writes := w.releases.writes
			for range 5 {
				w.live(nil)
			}
			tc.end(w.releases)
			w.settleUpgrade(nil, w.upgraded(releasePatch))
			g.Expect(w.releases.writes).To(Equal(writes))
		})
	}
}

// TestForceIsNotInherited: somebody has forced an update before.
func TestForceIsNotInherited(t *testing.T) {
	w := upgradable(t)
	w.releases.version.Spec.DesiredUpdate = &configv1.Update{Version: releaseInstalled.Version, Image: releaseInstalled.Image, Force: true}
	w.releases.changed()
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Upgrade.AcceptedRisks = []controlplanev1.UpgradeRisk{{Name: "DisksAreEaten"}}
	})
	w.wantRelease(releasePatch)
	w.settleUpgrade(nil, w.upgraded(releasePatch))
	NewWithT(t).Expect(w.releases.version.Spec.DesiredUpdate).To(Equal(&configv1.Update{
		Version: releasePatch.Version, Image: releasePatch.Image, AcceptRisks: []configv1.AcceptRisk{{Name: "DisksAreEaten"}},
	}))
}

// TestReplacementDuringUpgrade: a Machine that a user deletes meanwhile keeps its host until the upgrade is over, and a cluster whose
// Machine is being replaced is not upgraded before that is over.
func TestReplacementDuringUpgrade(t *testing.T) {
	t.Run("deleted during the upgrade", func(t *testing.T) {
		g := NewWithT(t)
		w := upgradable(t)
		w.wantRelease(releasePatch)
		w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeInProgressReason))
		w.deleteMachine("cp-1")
		w.settleUpgrade(nil, func() bool {
			if w.releases.model.Updating() {
				g.Expect(w.installed.removed).To(BeEmpty(), "of three members two would be left while hosts restart")
				g.Expect(w.message(controlplanev1.ScalingDownCondition)).To(Or(BeEmpty(), ContainSubstring("Machine cp-1 is deleted, and its host is "+
					"not freed yet: The hosts are restarted one after the other, and nobody leaves before that ends: ")))
			}
			return w.upgraded(releasePatch)()
		})
		g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-2", "cp-3"}))
	})
	t.Run("upgraded by somebody else when its Node is drained", func(t *testing.T) {
		g := NewWithT(t)
		w := upgradable(t)
		w.deleteMachine("cp-1")
		w.settleUpgrade(nil, func() bool { return w.releases.cordoned["cp-1"] })
		g.Expect(w.installed.removed).To(BeEmpty(), "the member has not left")
		w.releases.requestOutOfBand(releasePatch)
		w.releases.tick()
		const stuck = "The Node of Machine cp-1 is cordoned, which may keep them from it: set spec.paused of MachineConfigPool master to true"
		w.settleUpgrade(nil, func() bool { return strings.Contains(w.message(controlplanev1.ScalingDownCondition), stuck) })
		for range 60 {
			w.live(nil)
		}
		g.Expect(w.installed.removed).To(BeEmpty(), "hosts are restarted as soon as nobody is cordoned any more")
		g.Expect(w.releases.away).To(BeEmpty(), "none is, because one is cordoned")

		w.releases.paused = map[string]bool{upgrade.Master: true}
		w.settleUpgrade(nil, func() bool { return slices.Equal(w.names(), []string{"cp-0", "cp-2", "cp-3"}) && w.whole() })
		g.Expect(w.installed.removed).To(Equal([]string{"cp-1"}))
		w.releases.paused = nil
		w.settleUpgrade(nil, func() bool { return w.releases.version.Status.History[0].State == configv1.CompletedUpdate })
		g.Expect(w.voters()).To(Equal(3))
	})
	t.Run("upgraded during the replacement", func(t *testing.T) {
		g := NewWithT(t)
		w := upgradable(t)
		w.deleteMachine("cp-1")
		w.wantRelease(releasePatch)
		w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeWaitingForControlPlaneReason))
		w.settleUpgrade(nil, func() bool {
			if len(w.names()) < 3 {
				g.Expect(w.releases.writes).To(BeZero())
			}
			return w.upgraded(releasePatch)()
		})
		g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-2", "cp-3"}))
	})
}

// TestClusterIsDeletedDuringUpgrade: nothing waits for the upgrade.
func TestClusterIsDeletedDuringUpgrade(t *testing.T) {
	w := upgradable(t)
	w.wantRelease(releasePatch)
	w.settleUpgrade(nil, w.upgrading(controlplanev1.UpgradeInProgressReason))
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	for range 10 {
		w.must(w.try())
		w.departures()
	}
	NewWithT(t).Expect(w.machines()).To(BeEmpty())
}
