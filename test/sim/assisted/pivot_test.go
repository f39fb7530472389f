// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"sync"
	"testing"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// pivotWorkload notes whether a cluster was without its API because the bootstrap host rebooted.
type pivotWorkload struct {
	*instantWorkload

	mu       sync.Mutex
	pivoting []bool
}

func (w *pivotWorkload) Apply(spec ClusterSpec) {
	w.instantWorkload.Apply(spec)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.pivoting); spec.Installing && (n == 0 || w.pivoting[n-1] != spec.Pivoting) {
		w.pivoting = append(w.pivoting, spec.Pivoting)
	}
}

// TestPivot: the API goes once while the bootstrap host reboots, and comes back for the installation to be completed.
func TestPivot(t *testing.T) {
	w := &pivotWorkload{instantWorkload: newInstantWorkload()}
	f := newFixture(t, Options{Workload: w})
	f.cluster("s1", 1, 0, false)
	f.infraEnv("ie", "s1")
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnown)
	f.patchAgent(name, func(a *aiv1.Agent) { a.Spec.Approved = true })
	f.waitCluster("s1", clusterAddingHosts)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pivoting) != 3 || w.pivoting[0] || !w.pivoting[1] || w.pivoting[2] {
		t.Errorf("the bootstrap host's reboots were seen as %v, want one", w.pivoting)
	}
}
