// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// upgraded counts the upgrades of all clusters of the world.
var upgraded = tally{runs: map[types.UID]string{}, reasons: map[types.UID]string{}, upgrades: map[string]float64{}}

// failures are the reasons of Upgrading with which an upgrade counts as failed: TestContractVersions asks for a release that there is not.
var failures = []string{
	controlplanev1.UpgradeFailingReason, controlplanev1.UpgradeInterruptedReason, controlplanev1.UpgradeReleaseNotAcceptedReason,
	controlplanev1.UpgradeRefusedReason,
}

// tally counts upgrades as somebody sees them who watches the API server. The stories run at the same time and upgrade to the same minor
// versions, so that what the manager has to have counted is known of all of them only.
type tally struct {
	mu sync.Mutex
	// runs are the releases that were seen of control planes, and reasons what Upgrading said.
	runs, reasons map[types.UID]string
	// upgrades by minor version and result, and completed is how many of them came to their end.
	upgrades  map[string]float64
	completed float64
}

func (u *tally) watch(world *sandbox.World) {
	world.Watch.OnChange(func(object client.Object) {
		cp, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane)
		if !ok {
			return
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		was, is := u.runs[cp.UID], cp.Status.DistributionVersion
		if u.runs[cp.UID] = is; was != "" && was != is {
			u.upgrades[metrics.ReleaseMinor(is)+",completed"]++
			u.completed++
		}
		before, reason := u.reasons[cp.UID], conditions.GetReason(cp, controlplanev1.UpgradingCondition)
		u.reasons[cp.UID] = reason
		if before != "" && !slices.Contains(failures, before) && slices.Contains(failures, reason) {
			u.upgrades[metrics.ReleaseMinor(cmp.Or(cp.Status.Upgrade.Version, cp.Spec.DistributionVersion))+",failed"]++
		}
	})
}

// counted are the upgrades until now, and how many of them are complete.
func (u *tally) counted() (upgrades map[string]float64, completed float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.upgrades), u.completed
}

// expectUpgradesCounted waits until the manager has counted exactly the upgrades that were seen, those that are complete with their times,
// and returns them with what was scraped.
func expectUpgradesCounted(t *testing.T) (upgrades map[string]float64, scrape sandbox.Scrape) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var err error
		scrape, err = world.Scrape(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		var completed float64
		upgrades, completed = upgraded.counted()
		g.Expect(scrape.ControlPlane.Values("openshift_assisted_upgrades_total", "release_minor", "result")).To(Equal(upgrades))
		g.Expect(scrape.ControlPlane.Value("openshift_assisted_upgrade_seconds")).To(Equal(completed))
	}).WithContext(t.Context()).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
	return upgrades, scrape
}
