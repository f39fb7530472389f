// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"
	"time"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestReclaim: an installed host that is taken out of its cluster is rebooted into the discovery image, if the service reaches the cluster.
func TestReclaim(t *testing.T) {
	w := &switchedWorkload{instantWorkload: newInstantWorkload()}
	d := fastDurations()
	d.Heartbeat = time.Hour
	f := newFixture(t, Options{Workload: w, Durations: d})
	f.cluster("s1", 1, 0, false)
	f.infraEnv("day1", "s1")
	first := f.boot("h0", "day1")
	f.waitAgent(first, hostKnown)
	f.patchAgent(first, func(a *aiv1.Agent) { a.Spec.Approved = true })
	f.waitCluster("s1", clusterAddingHosts)

	f.infraEnv("late", "")
	join := func(host string) string {
		name := f.boot(host, "late")
		f.waitAgent(name, hostKnownUnbound)
		f.patchAgent(name, func(a *aiv1.Agent) {
			a.Spec.Approved, a.Spec.Hostname = true, host
			a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Namespace: f.namespace, Name: "s1"}
		})
		f.waitAgent(name, hostAdded)
		return name
	}
	leave := func(name string) {
		f.patchAgent(name, func(a *aiv1.Agent) { a.Spec.Approved, a.Spec.ClusterDeploymentName = false, nil })
	}
	reclaimed := join("w0")
	leave(reclaimed)
	f.waitAgent(reclaimed, hostKnownUnbound)
	if boots := f.sim.backend.metal.Boots()[f.key("w0")]; boots != 2 {
		t.Errorf("the host was booted %d times, want twice", boots)
	}
	left := join("w1")
	w.down.Store(true)
	leave(left)
	f.waitAgent(left, hostUnbindingPending)
}
