// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// guardedWorkload is a pretended cluster that may refuse every credential. It counts how often it was asked, and told what there is to be.
type guardedWorkload struct {
	*instantWorkload
	closed         atomic.Bool
	asked, applied atomic.Int64
}

func (w *guardedWorkload) Accepts(context.Context, types.NamespacedName, []byte) bool {
	w.asked.Add(1)
	return !w.closed.Load()
}

func (w *guardedWorkload) Apply(spec ClusterSpec) {
	w.instantWorkload.Apply(spec)
	w.applied.Add(1)
}

// rebootedAddition takes a day-2 host so far that it runs from its disk, in a cluster that is installed already. before is done when its
// installation has begun.
func rebootedAddition(t *testing.T, before func(*fixture, *guardedWorkload)) (*fixture, *guardedWorkload, string) {
	t.Helper()
	w := &guardedWorkload{instantWorkload: newInstantWorkload()}
	d := fastDurations()
	d.RebootTimeout = time.Hour
	f := newFixture(t, Options{Workload: w, Durations: d})
	f.cluster("s1", 1, 0, false)
	f.infraEnv("ie", "s1")
	first := f.boot("h0", "ie")
	f.waitAgent(first, hostKnown)
	f.patchAgent(first, func(a *aiv1.Agent) { a.Spec.Approved = true })
	f.waitCluster("s1", clusterAddingHosts)
	f.infraEnv("ie2", "s1")
	f.sim.Faults().StageHang(f.key("w0"), StageWritingImage)
	name := f.boot("w0", "ie2")
	f.waitAgent(name, hostKnown)
	f.patchAgent(name, func(a *aiv1.Agent) { a.Spec.Approved, a.Spec.Hostname = true, "node-w0" })
	f.eventually("host w0 to write its disk", func() bool { return f.agent(name).Status.Progress.CurrentStage == StageWritingImage })
	before(f, w)
	f.sim.Faults().StageHang(f.key("w0"), "")
	return f, w, name
}

// runsFromDisk waits until host w0 has booted its disk, and until its cluster has been told so more than once.
func (f *fixture) runsFromDisk(w *guardedWorkload) {
	f.t.Helper()
	f.eventually("host w0 to boot its disk", func() bool {
		b := f.sim.backend
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.machines[f.key("w0")].mode == machineDisk
	})
	count := w.applied.Load()
	f.eventually("the cluster to be told", func() bool { return w.applied.Load() > count+2 })
}

// TestAdditionNeedsACredential: a day-2 host joins by a service that the cluster lets in, and by no other (ASSISTED 3.19).
func TestAdditionNeedsACredential(t *testing.T) {
	f, w, name := rebootedAddition(t, func(_ *fixture, w *guardedWorkload) { w.closed.Store(true) })
	f.runsFromDisk(w)
	count := w.asked.Load()
	f.eventually("the service to try again", func() bool { return w.asked.Load() > count+2 })
	if w.Status(f.key("s1")).Nodes["node-w0"].Joined {
		t.Error("the host has joined, and nobody has approved its certificate")
	}
	debug := f.agent(name).Status.DebugInfo
	if debug.State != hostInstallingInProgress || debug.StateInfo != StageRebooting {
		t.Errorf("the host is %s: %s", debug.State, debug.StateInfo)
	}
	w.closed.Store(false)
	f.waitAgent(name, hostAdded)
}

// TestAdditionNeedsASecret: the service writes the installer's kubeconfig once, and takes what is there afterwards.
func TestAdditionNeedsASecret(t *testing.T) {
	secret := &corev1.Secret{}
	f, w, name := rebootedAddition(t, func(f *fixture, _ *guardedWorkload) {
		must(f.t, f.client.Get(f.ctx, f.key(kubeconfigName("s1")), secret))
		must(f.t, f.client.Delete(f.ctx, secret))
	})
	f.runsFromDisk(w)
	f.patchACI("s1", func(aci *hiveext.AgentClusterInstall) { aci.Labels = map[string]string{"touched": "true"} })
	f.runsFromDisk(w)
	if w.Status(f.key("s1")).Nodes["node-w0"].Joined || w.asked.Load() > 0 {
		t.Error("the host has joined by a Secret that does not exist")
	}
	secret.ResourceVersion, secret.UID = "", ""
	f.create(secret)
	f.waitAgent(name, hostAdded)
}

// TestAdditionNeedsTheService: while the service is away nobody lets a day-2 host in that has rebooted.
func TestAdditionNeedsTheService(t *testing.T) {
	f, w, name := rebootedAddition(t, func(_ *fixture, w *guardedWorkload) { w.closed.Store(true) })
	f.runsFromDisk(w)
	f.sim.Faults().ServiceDown(time.Hour)
	w.closed.Store(false)
	f.runsFromDisk(w)
	f.sim.changeMachine(f.key("w0"), func(b *backend, m *machine) {
		b.hosts[m.hostID].reached = true
		b.serve(m, false)
		if m.served {
			t.Error("a service that is away looks after a host")
		}
		b.serve(m, true)
		if !m.served {
			t.Error("a service that reaches the cluster does not look after its host")
		}
		b.hosts[m.hostID].reached, m.served = false, false
	})
	if w.Status(f.key("s1")).Nodes["node-w0"].Joined {
		t.Error("the host has joined without the service")
	}
	f.sim.Faults().ServiceUp()
	f.waitAgent(name, hostAdded)
}
