// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestEnough: which hosts a cluster needs to be installed.
func TestEnough(t *testing.T) {
	for _, tt := range []struct {
		masters, workers []string
		without          bool
		want             bool
	}{
		{masters: []string{hostInstalled, hostInstalled, hostInstalled}, want: true},
		{masters: []string{hostInstalled, hostInstalled, hostError}},
		{masters: []string{hostInstalled, hostInstalled}},
		{masters: []string{hostInstalled, hostInstalled, hostInstalled}, without: true},
		{masters: []string{hostInstalled, hostInstalled, hostInstalled}, workers: []string{hostError}, want: true},
		{masters: []string{hostInstalled, hostInstalled, hostInstalled}, workers: []string{hostError, hostInstalled}},
		{masters: []string{hostInstalled, hostInstalled, hostInstalled}, workers: []string{hostError, hostInstalled, hostInstalling}},
		{masters: []string{hostInstalled, hostInstalled, hostInstalled}, workers: []string{hostError, hostInstalled, hostInstalled}, want: true},
	} {
		t.Run(fmt.Sprint(tt.masters, tt.workers, tt.without), func(t *testing.T) {
			b := New(Options{}).backend
			c := &cluster{id: "c", spec: clusterInput{ControlPlaneAgents: 3}}
			for i, state := range slices.Concat(tt.masters, tt.workers) {
				role := roleMaster
				if i >= len(tt.masters) {
					role = roleWorker
				}
				id := fmt.Sprint(i)
				b.hosts[id] = &host{id: id, clusterID: c.id, kind: kindHost, role: role, state: state}
			}
			var without *host
			if tt.without {
				without = b.hosts["0"]
			}
			if got := c.enough(b, without, hostInstalled); got != tt.want {
				t.Errorf("enough is %t", got)
			}
		})
	}
}

// crew is a cluster of three control-plane hosts and some workers that is being installed.
type crew struct {
	*fixture
	agents map[string]string
}

// install lets a cluster begin whose hosts are m0 to m2, w0 and so on.
func install(t *testing.T, workers int, d Durations, inject func(f Faults, key func(string) HostKey)) crew {
	t.Helper()
	c := crew{newFixture(t, Options{Durations: d}), map[string]string{}}
	c.cluster("c1", 3, workers, true)
	c.infraEnv("ie", "")
	inject(c.sim.Faults(), c.key)
	for i := range 3 + workers {
		host := fmt.Sprintf("m%d", i)
		if i >= 3 {
			host = fmt.Sprintf("w%d", i-3)
		}
		c.agents[host] = c.boot(host, "ie")
	}
	roles := map[byte]string{'m': roleMaster, 'w': roleWorker}
	for _, host := range slices.Sorted(maps.Keys(c.agents)) {
		c.waitAgent(c.agents[host], hostKnownUnbound)
		c.patchAgent(c.agents[host], func(a *aiv1.Agent) {
			a.Spec.Role, a.Spec.Hostname, a.Spec.Approved = roles[host[0]], "node-"+host, true
			a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: "c1", Namespace: c.namespace}
		})
	}
	c.waitCluster("c1", clusterReady)
	c.patchACI("c1", func(aci *hiveext.AgentClusterInstall) { aci.Spec.HoldInstallation = false })
	return c
}

// ended expects the cluster to end in a state, and says why.
func (c crew) ended(state, info string) {
	c.t.Helper()
	c.waitCluster("c1", state)
	if got := c.aci("c1").Status.DebugInfo.StateInfo; got != info {
		c.t.Errorf("cluster c1 is %s: %s, want %s", state, got, info)
	}
}

// TestWorkersFail: a cluster is installed without workers that failed, unless fewer than two are left of several.
func TestWorkersFail(t *testing.T) {
	for _, tt := range []struct {
		workers     int
		failed      []string
		state, info string
	}{
		{workers: 1, failed: []string{"w0"}, state: clusterAddingHosts, info: notAllWorkers},
		{workers: 2, failed: []string{"w0"}, state: clusterError, info: clusterInfos[clusterError]},
		{workers: 3, failed: []string{"w1"}, state: clusterAddingHosts, info: notAllWorkers},
		{workers: 3, failed: []string{"w1", "w2"}, state: clusterError, info: clusterInfos[clusterError]},
	} {
		t.Run(fmt.Sprintf("%d of %d", len(tt.failed), tt.workers), func(t *testing.T) {
			t.Parallel()
			c := install(t, tt.workers, fastDurations(), func(f Faults, key func(string) HostKey) {
				for _, host := range tt.failed {
					f.InstallFails(key(host), StageWritingImage, "no space left on device")
				}
			})
			c.ended(tt.state, tt.info)
			for host, name := range c.agents {
				switch {
				case slices.Contains(tt.failed, host), tt.state == clusterError:
					c.waitAgent(name, hostError)
				default:
					c.waitAgent(name, hostInstalled)
				}
			}
		})
	}
}

// TestPendingUserAction: a cluster waits for a host that boots the wrong medium, and goes on when it boots its disk.
func TestPendingUserAction(t *testing.T) {
	for _, host := range []string{"m0", "w0"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := install(t, 2, fastDurations(), func(f Faults, key func(string) HostKey) { f.WrongBootOrder(key(host), true) })
			c.waitAgent(c.agents[host], hostInstallingPending)
			c.ended(clusterInstallingPending, "Cluster has hosts pending user action")
			if reason := clusterReason(c.aci("c1"), condCompleted); reason != "InstallationInProgress" {
				t.Errorf("Completed has the reason %s", reason)
			}
			c.sim.Faults().WrongBootOrder(c.key(host), false)
			c.sim.Reboot(c.key(host))
			c.ended(clusterAddingHosts, clusterInfos[clusterAddingHosts])
		})
	}
	t.Run("a worker is forgotten that the cluster can do without", func(t *testing.T) {
		t.Parallel()
		d := fastDurations()
		d.StageTimeout = 6 * time.Second
		c := install(t, 3, d, func(f Faults, key func(string) HostKey) { f.WrongBootOrder(key("w0"), true) })
		c.ended(clusterAddingHosts, notAllWorkers)
		if info := c.agent(c.agents["w0"]).Status.DebugInfo.StateInfo; info != neverBooted {
			t.Errorf("the host failed because of %q", info)
		}
	})
}
