// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// maxLife is how many steps the longest story of an installed cluster may take: each host of a new revision takes four.
const maxLife = 1000

// livingWorld is a world with an available cluster whose Machines are held by Cluster API core until their hosts are free.
func livingWorld(t *testing.T, replicas int32) *world {
	t.Helper()
	w := newWorld(t, replicas, 0)
	w.run(nil, w.available)
	w.answers()
	for range 3 {
		w.live(nil)
	}
	return w
}

// some is how many of n are tried: all, or with the race detector one in fifty.
func some(n int) int {
	if thorough {
		return n
	}
	return (n + 49) / 50
}

// stride is how far the points at which something happens lie apart: every point is one, or with the race detector one of n.
func stride(n int) int {
	if thorough {
		return 1
	}
	return n
}

// inRandomOrder tells a story with so many seeds, each of which is an order in which the controllers act.
func inRandomOrder(t *testing.T, name string, seeds int, tell func(*testing.T, *rand.Rand)) {
	t.Helper()
	for seed := range some(seeds) {
		t.Run(fmt.Sprintf("%s in random order %d", name, seed), func(t *testing.T) {
			t.Parallel()
			tell(t, rand.New(rand.NewSource(int64(seed))))
		})
	}
}

// live lets every controller of an installed cluster act once. An error of a pass is tried again, as the real one is.
func (w *world) live(order *rand.Rand) {
	w.t.Helper()
	controllers := []func(){func() { _ = w.try() }, w.finalize, w.core, w.departures, w.etcd}
	if w.healthCheck {
		controllers = append(controllers, w.nodeHealth)
	}
	if w.releases != nil {
		controllers = append(controllers, w.releases.tick)
	}
	if order != nil {
		order.Shuffle(len(controllers), func(i, j int) { controllers[i], controllers[j] = controllers[j], controllers[i] })
	}
	for _, act := range controllers {
		act()
		w.checkEtcd()
	}
	w.now = w.now.Add(time.Minute)
	if !w.installed.unreachable {
		w.api.Last = w.now
	}
}

// checkEtcd fails when etcd has lost its quorum by what was done: faults of the tests leave it one.
func (w *world) checkEtcd() {
	w.t.Helper()
	if w.installed.model != nil && !w.installed.model.Quorum() {
		w.t.Fatalf("etcd has lost its quorum: %s", w.etcdSummary())
	}
}

// settle lets the cluster live until reached, and returns what changed in which step.
func (w *world) settle(order *rand.Rand, reached func() bool) string {
	w.t.Helper()
	return w.tell(order, w.etcdSummary, reached)
}

// tell lets the cluster live until reached, and returns in which step its summary has changed, and to what.
func (w *world) tell(order *rand.Rand, summary func() string, reached func() bool) string {
	w.t.Helper()
	var story strings.Builder
	last := ""
	for step := 1; !reached(); step++ {
		if step > maxLife {
			w.t.Fatalf("not reached after %d steps; the story so far:\n%s", maxLife, story.String())
		}
		w.live(order)
		if s := summary(); s != last {
			fmt.Fprintf(&story, "step %d: %s\n", step, s)
			last = s
		}
	}
	return story.String()
}

// etcdSummary is one line of the story of an installed cluster. A leader has a star, a learner a tilde, and one that does not serve an
// exclamation mark.
func (w *world) etcdSummary() string {
	var machines, members, nodes []string
	for _, m := range w.machines() {
		name := m.Name
		if !m.DeletionTimestamp.IsZero() {
			name += " (deleting)"
		}
		machines = append(machines, name)
	}
	for _, m := range w.installed.model.Members() {
		name := m.Name
		if m.Leader {
			name += "*"
		}
		if m.Learner {
			name += "~"
		}
		if !m.Healthy {
			name += "!"
		}
		members = append(members, name)
	}
	slices.Sort(members)
	for _, host := range w.installed.list() {
		if host.Node {
			nodes = append(nodes, host.Name)
		}
	}
	s := fmt.Sprintf("machines: %s\n  members: %s\n  nodes: %s", strings.Join(machines, ", "), strings.Join(members, " "),
		strings.Join(nodes, " "))
	for _, condition := range []string{
		controlplanev1.RollingOutCondition, controlplanev1.RemediatingCondition, controlplanev1.ScalingUpCondition,
		controlplanev1.ScalingDownCondition,
	} {
		if message := w.message(condition); message != "" {
			s += "\n  " + condition + ": " + strings.ReplaceAll(message, "\n", "\n    ")
		}
	}
	return s
}

// whole reports whether there are as many Machines as replicas, none of which leaves, and as many members that serve and vote.
func (w *world) whole() bool {
	machines, replicas := w.machines(), int(*w.controlPlane().Spec.Replicas)
	if len(machines) != replicas {
		return false
	}
	for _, m := range machines {
		if !m.DeletionTimestamp.IsZero() || !m.Status.NodeRef.IsDefined() {
			return false
		}
	}
	members := w.installed.model.Members()
	for _, m := range members {
		if m.Learner || !m.Healthy {
			return false
		}
	}
	return len(members) == replicas
}

// deleteMachine is a user's kubectl delete.
func (w *world) deleteMachine(name string) {
	w.t.Helper()
	m := &clusterv1.Machine{}
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, m))
	w.must(w.client.Delete(context.Background(), m))
}

// hostDies cuts the power of a host.
func (w *world) hostDies(name string) {
	w.installed.hosts[name].Running, w.installed.hosts[name].Ready = false, false
}

// TestReplacement: what is deleted leaves etcd before its host is freed, and what replaces it joins.
func TestReplacement(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		do       func(*world)
	}{
		"a healthy Machine":            {3, func(w *world) { w.deleteMachine("cp-1") }},
		"a Machine whose host is dead": {3, func(w *world) { w.hostDies("cp-1"); w.live(nil); w.deleteMachine("cp-1") }},
		"two Machines":                 {3, func(w *world) { w.deleteMachine("cp-0"); w.deleteMachine("cp-1") }},
		"all three Machines":           {3, func(w *world) { w.deleteMachine("cp-0"); w.deleteMachine("cp-1"); w.deleteMachine("cp-2") }},
		"a healthy one and the dead one": {3, func(w *world) {
			w.hostDies("cp-2")
			w.live(nil)
			w.deleteMachine("cp-0")
			w.deleteMachine("cp-2")
		}},
		"two dead ones of five": {5, func(w *world) {
			w.hostDies("cp-3")
			w.hostDies("cp-4")
			w.live(nil)
			w.deleteMachine("cp-3")
			w.deleteMachine("cp-4")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := livingWorld(t, tc.replicas)
			tc.do(w)
			compareStory(t, w.settle(nil, w.whole))
			NewWithT(t).Expect(w.installed.removed).To(HaveExactElements(slices.Compact(slices.Clone(w.installed.removed))), "each member once")
		})
		inRandomOrder(t, name, 20, func(t *testing.T, order *rand.Rand) {
			w := livingWorld(t, tc.replicas)
			tc.do(w)
			w.settle(order, w.whole)
		})
	}
}

// TestHookStays: nobody removes a member on a guess.
func TestHookStays(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.installed.refused = errors.New("pods/exec is forbidden")
	w.deleteMachine("cp-1")
	for range 5 {
		w.live(nil)
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.message(controlplanev1.ScalingDownCondition)).To(Equal("Machine cp-1 is deleted, and its host is not freed yet: " +
		"etcd cannot be asked for its members: pods/exec is forbidden"))
	w.installed.refused = nil
	w.settle(nil, w.whole)
}

// TestEtcdIsNotAskedInASteadyState: programs run in containers of etcd only when a Machine leaves.
func TestEtcdIsNotAskedInASteadyState(t *testing.T) {
	w := livingWorld(t, 3)
	for range 10 {
		w.live(nil)
	}
	NewWithT(t).Expect(w.installed.asked).To(BeZero())
}

// TestClusterIsDeletedWhileMachinesLeave: the whole cluster goes, so no host waits.
func TestClusterIsDeletedWhileMachinesLeave(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.deleteMachine("cp-0")
	w.deleteMachine("cp-1")
	w.live(nil)
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	for range 10 {
		w.must(client.IgnoreNotFound(w.try()))
		w.departures()
	}
	g.Expect(w.machines()).To(BeEmpty())
}

// TestHookStaysWhenAnotherClusterAnswers: somebody has put the kubeconfig of another cluster into the Secret.
func TestHookStaysWhenAnotherClusterAnswers(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.api.ID = "other"
	w.deleteMachine("cp-1")
	for range 5 {
		w.live(nil)
	}
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-1", "cp-2"}))
	g.Expect(w.installed.removed).To(BeEmpty())
	g.Expect(w.message(controlplanev1.ScalingDownCondition)).To(Equal("Machine cp-1 is deleted, and its host is not freed yet: " +
		"etcd cannot be asked for its members: cluster other answers, and " + clusterID + " was installed: look at Secret c-kubeconfig"))
	w.api.ID = clusterID
	w.settle(nil, w.whole)
}

// TestHookStaysWhileNothingIsDeleted: a control plane that is deleted without its Machines leaves a cluster that lives, whose hosts keep
// their members.
func TestHookStaysWhileNothingIsDeleted(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.installed.refused = errors.New("pods/exec is forbidden")
	w.deleteMachine("cp-1")
	w.live(nil)
	cp := w.controlPlane()
	cp.Finalizers = append(cp.Finalizers, metav1.FinalizerOrphanDependents)
	w.must(w.client.Update(context.Background(), cp))
	w.must(w.client.Delete(context.Background(), cp))
	for range 5 {
		w.must(w.try())
		w.departures()
	}
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-1", "cp-2"}))
}
