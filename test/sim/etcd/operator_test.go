// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestConditions are the words of the operator.
func TestConditions(t *testing.T) {
	const unsafe = "CheckSafeToScaleCluster found 2 healthy member(s) out of the 3 required by the HAScalingStrategy"
	for name, tc := range map[string]struct {
		options Options
		hosts   []string
		happens func(*world)
		kind    string
		want    Condition
	}{
		"available": {
			kind: "EtcdMembersAvailable", want: Condition{Status: True, Reason: "EtcdQuorate", Message: "3 members are available"},
		},
		"not degraded": {
			kind: "EtcdMembersDegraded", want: Condition{Status: False, Reason: "AsExpected", Message: "No unhealthy members found"},
		},
		"available with one dead": {
			happens: func(w *world) { w.off("c") }, kind: "EtcdMembersAvailable",
			want: Condition{Status: True, Reason: "EtcdQuorate", Message: "2 of 3 members are available, c is unhealthy"},
		},
		"degraded": {
			happens: func(w *world) { w.off("c") }, kind: "EtcdMembersDegraded",
			want: Condition{Status: True, Reason: "UnhealthyMembers", Message: "2 of 3 members are available, c is unhealthy"},
		},
		"a learner that has not started": {
			options: Options{Start: time.Hour}, happens: func(w *world) { w.add("d") }, kind: "EtcdMembersProgressing",
			want: Condition{
				Status: True, Reason: "MembersNotStarted", Message: "3 of 4 members are available, NAME-PENDING-127.91.0.4 has not started",
			},
		},
		"all started": {
			kind: "EtcdMembersProgressing", want: Condition{Status: False, Reason: "AsExpected", Message: "No unstarted etcd members found"},
		},
		"a silent kubelet": {
			happens: func(w *world) { w.off("c") }, kind: "NodeControllerDegraded",
			want: Condition{
				Status: True, Reason: "MasterNodesReady", Message: `The master nodes not ready: node "c" not ready since ` +
					"2026-01-02 03:00:30 +0000 UTC because NodeStatusUnknown (Kubelet stopped posting node status.)",
			},
		},
		"stable revisions": {
			kind: "NodeInstallerProgressing",
			want: Condition{Status: False, Reason: "AllNodesAtLatestRevision", Message: "3 nodes are at revision 7"},
		},
		"a new node": {
			options: Options{Install: time.Hour}, happens: func(w *world) { w.add("d") }, kind: "NodeInstallerProgressing",
			want: Condition{Status: True, Message: "1 node is at revision 0; 3 nodes are at revision 7; 0 nodes have achieved new revision 8"},
		},
		"a new node without a pod": {
			options: Options{Install: time.Hour}, happens: func(w *world) { w.add("d") }, kind: "GuardControllerDegraded",
			want: Condition{Status: True, Reason: "SyncError", Message: "Missing operand on node d"},
		},
		"static pods": {
			kind: "StaticPodsAvailable", want: Condition{Status: True, Message: "3 nodes are active; 3 nodes are at revision 7"},
		},
		"a dead member": {
			happens: func(w *world) { w.off("c") }, kind: "RevisionControllerDegraded",
			want: Condition{Status: True, Reason: "SyncError", Message: unsafe},
		},
		"a member removed with its Node": {
			happens: func(w *world) { w.leave("a", "c"); w.deleteNode("c") }, kind: "RevisionControllerDegraded",
			want: Condition{Status: True, Reason: "SyncError", Message: unsafe},
		},
		"a new node lifts the check": {
			options: Options{Install: time.Hour},
			happens: func(w *world) { w.leave("a", "c"); w.deleteNode("c"); w.add("d") }, kind: "RevisionControllerDegraded",
			want: Condition{Status: False, Reason: "AsExpected"},
		},
		"one of five is dead": {
			hosts: []string{"a", "b", "c", "d", "e"}, happens: func(w *world) { w.off("e") }, kind: "RevisionControllerDegraded",
			want: Condition{Status: False, Reason: "AsExpected"},
		},
		"a single node asks for nobody": {
			hosts: []string{"a"}, kind: "RevisionControllerDegraded", want: Condition{Status: False, Reason: "AsExpected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.hosts == nil {
				tc.hosts = []string{"a", "b", "c"}
			}
			w := newWorld(t, tc.options, tc.hosts...)
			if tc.happens != nil {
				tc.happens(w)
			}
			w.ticks(10)
			got := w.Operator().Condition(tc.kind)
			tc.want.Type, tc.want.Since = tc.kind, got.Since
			w.g.Expect(got).To(Equal(tc.want))
		})
	}
}

// TestNotTolerant is five hosts of which two are dead: three healthy members are enough for the first check, and not for the second.
func TestNotTolerant(t *testing.T) {
	w := newWorld(t, Options{}, "a", "b", "c", "d", "e")
	w.off("d", "e")
	w.ticks(2)
	w.g.Expect(w.message("RevisionControllerDegraded")).To(
		HavePrefix("etcd cluster has quorum of 3 and 3 healthy members which is not fault tolerant: [{Member:ID:"))
}

// TestRevisions is which revision the hosts get.
func TestRevisions(t *testing.T) {
	at := func(pairs ...any) []NodeStatus {
		var out []NodeStatus
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, NodeStatus{Name: pairs[i].(string), Current: int32(pairs[i+1].(int))})
		}
		return out
	}
	for name, tc := range map[string]struct {
		happens func(*world)
		latest  int32
		want    []NodeStatus
	}{
		"nothing changes": {happens: func(*world) {}, latest: 7, want: at("a", 7, "b", 7, "c", 7)},
		"none with two members, though the endpoints change": {
			happens: func(w *world) { w.off("c"); w.leave("a", "c"); w.deleteNode("c") }, latest: 7, want: at("a", 7, "b", 7),
		},
		"one for certificates, one for endpoints": {
			happens: func(w *world) { w.add("d") }, latest: 9, want: at("a", 9, "b", 9, "c", 9, "d", 9),
		},
		"two when a member comes back: its learner counts as healthy": {
			happens: func(w *world) { w.leave("a", "c") }, latest: 9, want: at("a", 9, "b", 9, "c", 9),
		},
		"one when only a Node is deleted": {
			happens: func(w *world) { w.deleteNode("c") }, latest: 8, want: at("a", 8, "b", 8),
		},
		"it waits for a Node that does not run": {
			happens: func(w *world) { w.off("c"); w.leave("a", "c"); w.add("d") }, latest: 9,
			want: []NodeStatus{{"a", 7, 0}, {"b", 7, 0}, {"c", 7, 9}, {"d", 8, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := three(t)
			tc.happens(w)
			w.ticks(100)
			operator := w.Operator()
			w.g.Expect(operator.LatestAvailableRevision).To(Equal(tc.latest), "%v", w.lines)
			w.g.Expect(operator.NodeStatuses).To(Equal(tc.want))
		})
	}
}

// TestRestart is that members are away for a moment when they get a new revision, one at a time, if the options say so.
func TestRestart(t *testing.T) {
	for name, restart := range map[string]time.Duration{"restarts are seen": 25 * time.Second, "or not": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Restart: restart}, "a", "b", "c")
			w.add("d")
			away := map[string]bool{}
			for range 100 {
				w.ticks(1)
				unhealthy := slices.DeleteFunc(w.Members(), func(m Member) bool { return !m.Started || m.Healthy })
				w.g.Expect(len(unhealthy)).To(BeNumerically("<=", 1))
				for _, m := range unhealthy {
					away[m.Name] = true
				}
				w.g.Expect(w.Quorum()).To(BeTrue())
			}
			w.g.Expect(w.stable()).To(BeTrue())
			if restart > 0 {
				w.g.Expect(away).To(HaveLen(4), "the new one too: it votes in one revision and gets the next")
			} else {
				w.g.Expect(away).To(BeEmpty())
			}
		})
	}
}

// TestNoQuorum is that the operator says nothing new when its API is gone.
func TestNoQuorum(t *testing.T) {
	w := three(t)
	w.off("b", "c")
	w.ticks(5)
	w.g.Expect(w.Quorum()).To(BeFalse())
	w.g.Expect(w.message("EtcdMembersAvailable")).To(Equal("3 members are available"))
	w.g.Expect(w.Pods()).To(HaveLen(3))
}

// TestPods is what the API has of mirror pods and guards.
func TestPods(t *testing.T) {
	w := newWorld(t, Options{PodGC: 45 * time.Second}, "a", "b", "c")
	_, minimum := w.Guards()
	w.g.Expect(minimum).To(Equal(2))
	w.g.Expect(w.Pods()).To(ContainElement(Pod{Name: "etcd-c", Node: "c", Revision: 7, Running: true, EtcdReady: true, Ready: true}))
	w.off("c")
	w.ticks(1)
	w.g.Expect(w.Pods()).To(ContainElement(Pod{Name: "etcd-c", Node: "c", Revision: 7, Running: true, EtcdReady: true}))
	w.change("b", func(host *Host) { host.Cordoned = true })
	w.deleteNode("c")
	w.ticks(3)
	w.g.Expect(w.Pods()).To(HaveLen(3), "the garbage collector waits")
	guards, minimum := w.Guards()
	w.g.Expect(guards).To(Equal([]Guard{
		{Name: "etcd-guard-a", Node: "a", Ready: true, Remade: true}, {Name: "etcd-guard-b", Node: "b", Ready: true},
	}))
	w.g.Expect(minimum).To(Equal(1))
	w.ticks(4)
	w.g.Expect(w.Pods()).To(HaveLen(2))
}

// TestClusterOperator is ClusterOperator etcd: available while it is degraded, and degraded after its inertia only.
func TestClusterOperator(t *testing.T) {
	w := newWorld(t, Options{DegradedInertia: time.Minute}, "a", "b", "c")
	w.g.Expect(w.clusterOperator("Degraded").Message).To(ContainSubstring("NodeControllerDegraded: All master nodes are ready"))
	w.off("c")
	w.ticks(6)
	w.g.Expect(w.clusterOperator("Degraded").Status).To(Equal(False))
	w.ticks(2)
	degraded := w.clusterOperator("Degraded")
	w.g.Expect(degraded.Status).To(Equal(True))
	w.g.Expect(degraded.Reason).To(Equal("EtcdMembers_UnhealthyMembers::NodeController_MasterNodesReady::RevisionController_SyncError"))
	w.g.Expect(degraded.Message).To(ContainSubstring("EtcdMembersDegraded: 2 of 3 members are available, c is unhealthy\n"))
	w.g.Expect(w.clusterOperator("Available").Status).To(Equal(True))
	w.on("c")
	w.ticks(1)
	w.g.Expect(w.clusterOperator("Degraded").Status).To(Equal(False))
}
