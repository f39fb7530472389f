// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// upgraded counts the upgrades of all clusters of the world.
var upgraded = tally{runs: map[types.UID]string{}, completed: map[string]float64{}}

// tally counts upgrades as somebody sees them who watches the API server. The stories run at the same time and upgrade to the same minor
// versions, so that what the manager has to have counted is known of all of them only.
type tally struct {
	mu sync.Mutex
	// runs are the releases that were seen of control planes.
	runs map[types.UID]string
	// completed are upgrades by minor version and result.
	completed map[string]float64
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
			u.completed[metrics.ReleaseMinor(is)+",completed"]++
		}
	})
}

// counted are the upgrades until now, and how many they are.
func (u *tally) counted() (upgrades map[string]float64, all float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, number := range u.completed {
		all += number
	}
	return maps.Clone(u.completed), all
}

// expectUpgradesCounted waits until the manager has counted exactly the upgrades that were seen, each with its time, and returns them. None
// fails in this world.
func expectUpgradesCounted(t *testing.T) (upgrades map[string]float64, scrape sandbox.Scrape) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var err error
		scrape, err = world.Scrape(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		var all float64
		upgrades, all = upgraded.counted()
		g.Expect(scrape.ControlPlane.Values("openshift_assisted_upgrades_total", "release_minor", "result")).To(Equal(upgrades))
		g.Expect(scrape.ControlPlane.Value("openshift_assisted_upgrade_seconds")).To(Equal(all))
	}).WithContext(t.Context()).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
	return upgrades, scrape
}
