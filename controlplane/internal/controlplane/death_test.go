// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// death ends a manager at one of its calls to an API server or to etcd.
type death struct {
	// at is the number of the call, from 1; after: it takes effect before the manager ends.
	at    int
	after bool
	// calls counts them. dead: the manager has ended, and none of its calls arrives any more.
	calls int
	dead  bool
}

// around makes a call, or ends the manager.
func (d *death) around(call func() error) error {
	if d == nil {
		return call()
	}
	if d.dead {
		return errors.New("the manager has ended")
	}
	if d.calls++; d.calls != d.at {
		return call()
	}
	if d.after {
		_ = call()
	}
	d.dead = true
	runtime.Goexit()
	return nil
}

// dying runs one pass of a manager that may end in it.
func (w *world) dying() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.try()
	}()
	<-ended
}

// mortal makes every write of the manager, and every question to etcd, one at which it may end.
func (w *world) mortal(d *death) {
	w.installed.death = d
	w.r.Client = w.intercepted(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return d.around(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return d.around(func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return d.around(func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return d.around(func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
	})
}

// departure is a way in which Machines leave, begun in a world of so many.
type departure struct {
	replicas int32
	begin    func(*world)
}

var departures = map[string]departure{
	"a healthy one": {3, func(w *world) { w.deleteMachine("cp-2") }},
	"the leader":    {3, func(w *world) { w.deleteMachine(w.leader()) }},
	"a dead one": {3, func(w *world) {
		w.hostDies("cp-2")
		w.live(nil)
		w.deleteMachine("cp-2")
	}},
	"a learner": {3, func(w *world) {
		w.installed.model.Faults.Learner = map[string]bool{"cp-3": true}
		w.deleteMachine("cp-2")
		w.settle(nil, func() bool { return w.hasLearner("cp-3") })
		w.deleteMachine("cp-3")
	}},
	"scale-down": {4, func(w *world) {
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
	}},
	"rollout without a spare host": {3, func(w *world) { w.rollingUpdate(0); w.renewTemplate() }},
	"rollout with a spare host":    {3, func(w *world) { w.rollingUpdate(1); w.renewTemplate() }},
	"remediation": {3, func(w *world) {
		w.healthCheck = true
		w.hostDies("cp-2")
		for range 8 {
			w.nodeHealth()
			w.now = w.now.Add(time.Minute)
		}
		w.etcd()
	}},
}

// leader is the name of the member that leads.
func (w *world) leader() string {
	for _, m := range w.installed.model.Members() {
		if m.Leader {
			return m.Name
		}
	}
	return ""
}

func (w *world) hasLearner(name string) bool {
	for _, m := range w.installed.model.Members() {
		if m.Name == name && m.Learner {
			return true
		}
	}
	return false
}

// TestManagerEndsWhileAMachineLeaves: at whatever call the manager ends, the next one goes on. No member is removed twice, and none comes
// back.
func TestManagerEndsWhileAMachineLeaves(t *testing.T) {
	for name, leaves := range departures {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the call takes effect %t", name, after), func(t *testing.T) {
				t.Parallel()
				points := 0
				for at := 1; leaves.endsAt(t, at, after); at += stride(15) {
					points++
				}
				t.Logf("the manager ended at each of %d calls", points)
				NewWithT(t).Expect(points * stride(15)).To(BeNumerically(">", 8))
			})
		}
	}
}

// endsAt lets a manager end at one of its calls, which takes effect or does not, and another go on at once. It reports whether there were
// so many calls before the Machine was gone and its replacement was being made.
func (d departure) endsAt(t *testing.T, at int, after bool) bool {
	t.Helper()
	w := livingWorld(t, d.replicas)
	before := w.names()
	d.begin(w)
	end := &death{at: at, after: after}
	w.mortal(end)
	for step := 0; step < 12 && !end.dead; step++ {
		w.dying()
		w.finalize()
		w.core()
		w.departures()
		w.etcd()
		w.checkEtcd()
	}
	if !end.dead {
		return false
	}
	w.mortal(nil)
	w.settle(nil, func() bool { return w.whole() && !slices.Equal(w.names(), before) })
	w.checkLeft(at)
	return true
}

// checkLeft fails when a member was removed twice, or when something of a Machine that is gone is left.
func (w *world) checkLeft(at int) {
	w.t.Helper()
	g := NewWithT(w.t)
	removed := slices.Sorted(slices.Values(w.installed.removed))
	g.Expect(removed).To(HaveExactElements(slices.Compact(slices.Clone(removed))), "call %d: each member is removed once", at)
	exists := map[string]bool{}
	for _, m := range w.machines() {
		exists[m.Name] = true
	}
	for _, m := range w.installed.model.Members() {
		g.Expect(exists).To(HaveKey(m.Name), "call %d: the member of a Machine that is gone", at)
	}
	for _, host := range w.installed.list() {
		g.Expect(host.Node && !exists[host.Name]).To(BeFalse(), "call %d: the Node of Machine %s, which is gone", at, host.Name)
	}
	infra := map[string]bool{}
	for _, o := range w.infraMachines() {
		infra[o.GetName()] = true
	}
	for name := range exists {
		g.Expect(infra).To(HaveKey(name), "call %d: the infrastructure machine of %s", at, name)
	}
}
