// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/golden"
)

// TestReplaceDead is host c of three that dies and is replaced by d.
func TestReplaceDead(t *testing.T) {
	w := newWorld(t, Options{PodGC: 50 * time.Second, DegradedInertia: 2 * time.Minute}, "a", "b", "c")
	w.sayf("c dies")
	w.off("c")
	w.ticks(3)
	w.g.Expect(w.clusterOperator("Degraded").Status).To(Equal(False), "inertia")
	w.ticks(12)
	w.sayf("ClusterOperator Degraded: %s", w.clusterOperator("Degraded").Reason)
	w.sayf("the member of c is removed, and the Node of c deleted")
	w.leave("a", "c")
	w.deleteNode("c")
	w.ticks(10)
	w.sayf("%s", w.message("RevisionControllerDegraded"))
	w.g.Expect(w.message("EtcdMembersAvailable")).To(Equal("2 members are available"))
	w.sayf("Node d joins, not ready")
	w.add("d")
	w.change("d", func(host *Host) { host.Ready = false })
	w.ticks(1)
	w.sayf("Node d is ready")
	w.change("d", func(host *Host) { host.Ready = true })
	for range 40 {
		w.ticks(1)
		progressing := w.clusterOperator("Progressing").Status == True
		w.g.Expect(progressing).To(Equal(!w.stable()), "Progressing as long as a revision is installed")
	}
	w.sayf("ClusterOperator Degraded: %s, %s", w.clusterOperator("Degraded").Status, w.clusterOperator("Degraded").Message)
	w.sayf("ClusterOperator Progressing: %s, %s", w.clusterOperator("Progressing").Status, w.clusterOperator("Progressing").Message)
	golden.Compare(t, "replace-dead.golden", strings.Join(w.lines, "\n")+"\n")
}

// TestGrow is a fourth and a fifth host.
func TestGrow(t *testing.T) {
	w := three(t)
	for _, name := range []string{"d", "e"} {
		w.sayf("%s joins", name)
		w.add(name)
		w.ticks(40)
		w.g.Expect(w.stable()).To(BeTrue())
	}
	golden.Compare(t, "grow.golden", strings.Join(w.lines, "\n")+"\n")
}

// TestSame is that a seed decides everything.
func TestSame(t *testing.T) {
	g := NewWithT(t)
	play := func(seed uint64) string {
		w := three(t)
		w.Cluster = New(seed, Options{Restart: 15 * time.Second, Promote: time.Minute})
		w.Bootstrap(w.all())
		w.ticks(3)
		w.off("b")
		w.ticks(3)
		out := w.Etcdctl("a", []string{"etcdctl", "endpoint", "status", "--cluster", "-w", "json"})
		w.leave("a", "b")
		w.deleteNode("b")
		w.add("d")
		w.ticks(60)
		list := w.Etcdctl("a", []string{"etcdctl", "member", "list", "-w", "json"})
		return strings.Join(w.lines, "\n") + out.Stdout + out.Stderr + list.Stdout
	}
	for seed := range uint64(100) {
		first := play(seed)
		g.Expect(play(seed)).To(Equal(first))
		g.Expect(play(seed + 1000)).NotTo(Equal(first))
	}
}
