// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capi-openshift/agent-providers/test/golden"
)

// TestForeignClock: a manager whose clock differs by ten minutes from that of the API server and of the hosts does the same in the same
// steps, and rests afterwards. When the installed cluster has answered it knows by its own clock.
func TestForeignClock(t *testing.T) {
	for name, difference := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, 2)
			w.r.now = func() time.Time { return w.now.Add(difference) }
			golden.Compare(t, "TestLifecycle_ha.golden", w.run(nil, w.available))
			checkAvailable(t, w, 3)
			w.reconcile()
			before := w.versions()
			w.now = w.now.Add(time.Minute)
			w.reconcile()
			if diff := cmp.Diff(before, w.versions()); diff != "" {
				t.Errorf("a pass without a reason wrote (-before +after):\n%s", diff)
			}
		})
		t.Run(name+", a worker never boots", func(t *testing.T) {
			w := newWorld(t, 3, 2)
			w.r.now = func() time.Time { return w.now.Add(difference) }
			w.unbootable["worker-1"] = true
			golden.Compare(t, "TestWorkerThatNeverBoots.golden", w.run(nil, w.available))
		})
	}
}
