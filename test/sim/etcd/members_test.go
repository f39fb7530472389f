// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestMembership is who is a member after something happened to a cluster of a, b and c, and a long time passed.
func TestMembership(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		hosts   []string
		happens func(*world)
		want    string
	}{
		"nothing": {happens: func(*world) {}, want: "a* b c"},
		"a removed member whose Node lives comes back": {
			happens: func(w *world) { w.leave("a", "b") }, want: "a* b c",
		},
		"a removed leader whose Node lives comes back": {
			happens: func(w *world) { w.leave("b", "a") }, want: "a b* c",
		},
		"a removed member whose Node is gone stays away": {
			happens: func(w *world) { w.leave("a", "b"); w.deleteNode("b") }, want: "a* c",
		},
		"a removed member whose Node is being deleted stays away": {
			happens: func(w *world) {
				w.leave("a", "b")
				w.change("b", func(host *Host) { host.Deleting = true })
			}, want: "a* c",
		},
		"a removed member whose host is off stays away": {
			happens: func(w *world) { w.leave("a", "b"); w.off("b") }, want: "a* c",
		},
		"and comes back with the power": {
			happens: func(w *world) { w.leave("a", "b"); w.off("b"); w.ticks(20); w.on("b") }, want: "a* b c",
		},
		"a removed member comes back when its kubelet makes the Node again": {
			happens: func(w *world) {
				w.leave("a", "b")
				w.deleteNode("b")
				w.ticks(20)
				w.add("b")
			}, want: "a* b c",
		},
		"a member whose Node alone is deleted votes on": {happens: func(w *world) { w.deleteNode("b") }, want: "a* b c"},
		"a dead member stays a member":                  {happens: func(w *world) { w.off("b") }, want: "a* b! c"},
		"a dead member whose Node is deleted stays a member": {
			happens: func(w *world) {
				w.off("b")
				w.deleteNode("b")
			}, want: "a* b! c",
		},
		"a host that is left out is dead":      {happens: func(w *world) { delete(w.hosts, "b") }, want: "127.91.0.2! a* c"},
		"a dead leader is followed by another": {happens: func(w *world) { w.off("a") }, want: "a! b* c"},
		"a member that dies and comes back is the same": {
			happens: func(w *world) {
				w.off("b")
				w.ticks(20)
				w.on("b")
			}, want: "a* b c",
		},
		"without quorum there is no leader": {happens: func(w *world) { w.off("b", "c") }, want: "a b! c!"},
		"quorum comes back with the power": {
			happens: func(w *world) {
				w.off("b", "c")
				w.ticks(20)
				w.on("c")
			}, want: "a* b! c",
		},
		"etcd is sick though its host runs": {
			happens: func(w *world) {
				w.Faults.Sick = map[string]bool{"b": true}
			}, want: "a* b! c",
		},
		"a fourth host joins": {happens: func(w *world) { w.add("d") }, want: "a* b c d"},
		"two hosts join":      {happens: func(w *world) { w.add("d"); w.add("e") }, want: "a* b c d e"},
		"a host joins before its Node is ready": {
			happens: func(w *world) {
				w.add("d")
				w.change("d", func(host *Host) { host.Ready = false })
			}, want: "a* b c d",
		},
		"a host without power does not join": {happens: func(w *world) { w.add("d"); w.off("d") }, want: "a* b c"},
		"a host whose Node is being deleted does not join": {
			happens: func(w *world) {
				w.add("d")
				w.change("d", func(host *Host) { host.Deleting = true })
			}, want: "a* b c",
		},
		"nothing joins while a member is dead": {happens: func(w *world) { w.off("c"); w.add("d") }, want: "a* b c!"},
		"nor when only the Node of the dead is deleted": {
			happens: func(w *world) {
				w.off("c")
				w.deleteNode("c")
				w.add("d")
			}, want: "a* b c!",
		},
		"it joins when the dead is removed, and its Node too": {
			happens: func(w *world) {
				w.off("c")
				w.ticks(1)
				w.leave("a", "c")
				w.deleteNode("c")
				w.add("d")
			}, want: "a* b d",
		},
		"the Node of a dead host that left keeps none away": {
			happens: func(w *world) {
				w.off("c")
				w.ticks(1)
				w.leave("a", "c")
				w.add("d")
			}, want: "a* b d",
		},
		"a learner stays one, and no other host is added": {
			happens: func(w *world) { w.Faults.Learner = map[string]bool{"d": true}; w.add("d"); w.add("e") }, want: "a* b c d?",
		},
		"there is one learner at a time": {
			hosts: []string{"a", "b", "c", "d", "e"},
			happens: func(w *world) {
				w.Faults.Learner = map[string]bool{"d": true}
				w.leave("a", "d")
				w.leave("a", "e")
			}, want: "a* b c d?",
		},
		"a learner that does not start blocks the others": {
			options: Options{Start: 24 * time.Hour}, happens: func(w *world) { w.add("d"); w.add("e") }, want: "a* b c d?!",
		},
		"a dead learner blocks the others": {
			options: Options{Promote: 24 * time.Hour},
			happens: func(w *world) { w.add("d"); w.ticks(20); w.off("d"); w.add("e") }, want: "a* b c d?!",
		},
		"a host that was installed again is not its old member": {
			happens: func(w *world) { w.change("c", func(host *Host) { host.Disk = "new" }) }, want: "a* b c!",
		},
		"and joins when that is removed, with a new Node": {
			happens: func(w *world) {
				w.deleteNode("c")
				w.change("c", func(host *Host) { host.Disk = "new" })
				w.ticks(10)
				w.leave("a", "c")
				w.change("c", func(host *Host) { host.Node, host.Ready = true, true })
			}, want: "a* b c",
		},
		"etcd takes two of two for a cluster, and lets one of them go": {
			happens: func(w *world) {
				w.leave("a", "b")
				w.deleteNode("b")
				w.ticks(2)
				w.deleteNode("c")
				w.leave("a", "c")
			}, want: "a*",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.hosts == nil {
				tc.hosts = []string{"a", "b", "c"}
			}
			w := newWorld(t, tc.options, tc.hosts...)
			tc.happens(w)
			w.ticks(100)
			w.g.Expect(w.memberSummary()).To(Equal(tc.want), "%s", w.lines)
		})
	}
}

// TestNewID is that a member that comes back is another one, with an id that floating-point numbers lose.
func TestNewID(t *testing.T) {
	w := three(t)
	before := w.idOf("b")
	w.leave("a", "b")
	w.ticks(50)
	w.g.Expect(w.idOf("b")).NotTo(Equal(before))
	for _, m := range w.Members() {
		w.g.Expect(m.ID).To(BeNumerically(">", uint64(1)<<53))
		w.g.Expect(uint64(float64(m.ID))).NotTo(Equal(m.ID))
	}
}

// TestOneLearner is that hosts join one after the other, and that the new one votes before the others get the new revision.
func TestOneLearner(t *testing.T) {
	w := three(t)
	w.add("d")
	w.add("e")
	for range 100 {
		w.ticks(1)
		learners, served := 0, 0
		for _, m := range w.Members() {
			if m.Learner {
				learners++
			}
		}
		for _, node := range w.Operator().NodeStatuses {
			if node.Target != 0 {
				served++
			}
			if node.Name == "a" && node.Target == 8 {
				w.g.Expect(w.memberAt(w.hosts["d"].Address).learner).To(BeFalse())
			}
		}
		w.g.Expect(learners).To(BeNumerically("<=", 1))
		w.g.Expect(served).To(BeNumerically("<=", 1), "one node at a time")
	}
	w.g.Expect(w.memberSummary()).To(Equal("a* b c d e"))
	w.g.Expect(w.stable()).To(BeTrue())
}

// TestIPv6 is the spelling of URLs.
func TestIPv6(t *testing.T) {
	g := NewWithT(t)
	c := New(1, Options{})
	c.Bootstrap([]Host{{Name: "a", Address: "fd00::1", Node: true, Running: true, Ready: true}})
	g.Expect(c.Members()[0].PeerURL).To(Equal("https://[fd00::1]:2380"))
	g.Expect(c.Members()[0].ClientURL).To(Equal("https://[fd00::1]:2379"))
	g.Expect(c.Endpoints()).To(HaveKeyWithValue(hexID(c.Members()[0].ID), "fd00::1"))
	out := c.Etcdctl("a", []string{"etcdctl", "member", "list", "-w=json"})
	g.Expect(out.Stdout).To(ContainSubstring(`"clientURLs":["https://[fd00::1]:2379"]`))
}
