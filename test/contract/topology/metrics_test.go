// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// What the manager counts of upgrades, and of those that are complete.
var (
	upgradesMetric = metrics.UpgradesTotal.Name
	secondsMetric  = metrics.UpgradeSeconds.Name
)

// upgraded counts the upgrades of all clusters of the world. The stories run at the same time and upgrade to the same minor versions, so
// that what the manager has to have counted is known of all of them only.
var upgraded = scraped.NewTally()

// failures are the reasons of Upgrading with which an upgrade counts as failed: TestContractVersions asks for a release that there is not.
var failures = []string{
	controlplanev1.UpgradeFailingReason, controlplanev1.UpgradeInterruptedReason, controlplanev1.UpgradeReleaseNotAcceptedReason,
	controlplanev1.UpgradeRefusedReason,
}

func seeUpgrades(object client.Object) {
	cp, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane)
	if !ok {
		return
	}
	is := cp.Status.DistributionVersion
	if was := upgraded.Was(cp, "release", is); was != "" && was != is {
		upgraded.Count(upgradesMetric, metrics.ReleaseMinor(is), "completed")
		upgraded.Count(secondsMetric)
	}
	reason := conditions.GetReason(cp, controlplanev1.UpgradingCondition)
	before := upgraded.Was(cp, "reason", reason)
	if before != "" && !slices.Contains(failures, before) && slices.Contains(failures, reason) {
		upgraded.Count(upgradesMetric, metrics.ReleaseMinor(cmp.Or(cp.Status.Upgrade.Version, cp.Spec.DistributionVersion)), "failed")
	}
}

// expectUpgradesCounted waits until the manager has counted exactly the upgrades that were seen, those that are complete with their times,
// and returns them with what was scraped.
func expectUpgradesCounted(t *testing.T) (upgrades map[string]float64, scrape sandbox.Scrape) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var err error
		scrape, err = world.Scrape(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		upgrades = upgraded.Values(upgradesMetric)
		g.Expect(scrape.ControlPlane.Values(upgradesMetric, "release_minor", "result")).To(Equal(upgrades))
		g.Expect(scrape.ControlPlane.Values(secondsMetric)).To(Equal(upgraded.Values(secondsMetric)))
	}).WithContext(t.Context()).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
	return upgrades, scrape
}
