// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// cut separates the management cluster from the installed one: nobody hears from its API or its Nodes, and nothing in it has changed.
func (w *world) cut() {
	w.t.Helper()
	w.installed.unreachable = true
	w.probe(false)
}

// reconnect ends what cut has begun.
func (w *world) reconnect() {
	w.t.Helper()
	w.installed.unreachable = false
	w.probe(true)
}

// probe writes what Cluster API core says of the connection, since now.
func (w *world) probe(answers bool) {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: clusterName}, cluster))
	conditions.Set(cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition,
		Status: conditions.BoolToStatus(answers), Reason: "Test", LastTransitionTime: metav1.NewTime(w.now)})
	w.must(w.client.Status().Update(context.Background(), cluster))
}

// TestNetworkIsCut: a MachineHealthCheck without a limit marks every control-plane Machine, because nobody sees the Nodes. Nothing is
// deleted, neither meanwhile nor when the Nodes are seen again one after the other.
func TestNetworkIsCut(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.healthCheck = true
	w.live(nil)
	before := w.names()
	w.cut()
	for range 20 {
		w.live(nil)
		g.Expect(w.names()).To(Equal(before))
	}
	g.Expect(w.message(controlplanev1.RemediatingCondition)).To(ContainSubstring("does not answer Cluster API"))
	w.reconnect()
	for range 20 {
		w.live(nil)
		g.Expect(w.names()).To(Equal(before))
	}
	g.Expect(w.message(controlplanev1.RemediatingCondition)).To(BeEmpty())
	for _, m := range w.machines() {
		g.Expect(conditions.Get(&m, clusterv1.MachineOwnerRemediatedCondition)).To(BeNil(), m.Name)
		g.Expect(m.DeletionTimestamp).To(BeNil(), m.Name)
	}
}

// TestMachineIsDeletedWhileNobodyAnswers: the host stays until etcd was asked.
func TestMachineIsDeletedWhileNobodyAnswers(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.cut()
	w.deleteMachine("cp-1")
	for range 10 {
		w.live(nil)
	}
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-1", "cp-2"}))
	g.Expect(w.installed.removed).To(BeEmpty())
	g.Expect(w.message(controlplanev1.ScalingDownCondition)).To(ContainSubstring("Machine cp-1 is deleted, and its host is not freed yet"))
	w.reconnect()
	w.settle(nil, w.whole)
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-2", "cp-3"}))
}

// TestMachineIsDeletedWhileAnotherJoins: at whatever point the new one is, both end as they should.
func TestMachineIsDeletedWhileAnotherJoins(t *testing.T) {
	for steps := 0; steps < 10; steps += stride(4) {
		t.Run(fmt.Sprintf("after %d steps", steps), func(t *testing.T) {
			w := livingWorld(t, 3)
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(4)) })
			for range steps {
				w.live(nil)
			}
			w.deleteMachine("cp-1")
			w.settle(nil, w.whole)
			w.checkLeft(steps)
		})
	}
}

// TestReplacementNeverBoots: two members are left, and no other goes until a Machine has joined in the place of the one that went.
func TestReplacementNeverBoots(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.unbootable["cp-3"] = true
	w.deleteMachine("cp-1")
	w.settle(nil, func() bool { return len(w.names()) == 3 && w.names()[1] == "cp-2" })
	w.deleteMachine("cp-0")
	for range 20 {
		w.live(nil)
	}
	g.Expect(w.names()).To(ContainElements("cp-0", "cp-2", "cp-3"))
	g.Expect(w.installed.removed).To(Equal([]string{"cp-1"}))
	g.Expect(w.message(controlplanev1.ScalingDownCondition)).To(ContainSubstring("Machine cp-0 is deleted, and its host is not freed yet"))
	w.deleteMachine("cp-3")
	w.settle(nil, w.whole)
	w.checkLeft(0)
}

// TestMemberComesBack: the manager ends after the member has left, and before it could see that the kubelet of its host, which still runs,
// has registered again. The member that the operator of etcd adds then leaves like the first.
func TestMemberComesBack(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.installed.afterDeletion = errors.New("the connection was lost")
	w.deleteMachine("cp-1")
	w.settle(nil, func() bool { return len(w.installed.removed) == 1 })
	w.installed.hosts["cp-1"].Node, w.installed.hosts["cp-1"].Ready = true, true
	w.installed.refused = errors.New("pods/exec is forbidden")
	for range 10 {
		w.live(nil)
	}
	g.Expect(w.installed.model.Members()).To(HaveLen(3), "the operator of etcd adds a host that runs and has a Node")
	g.Expect(w.names()).To(ContainElement("cp-1"), "the hook stays")
	w.installed.refused, w.installed.afterDeletion = nil, nil
	w.settle(nil, w.whole)
	g.Expect(w.installed.removed).To(Equal([]string{"cp-1", "cp-1"}))
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-2", "cp-3"}))
}

// TestClusterIsDeletedInTheMiddle: at whatever point a replacement, a rollout or a scale-down is, the whole cluster goes and no host waits.
func TestClusterIsDeletedInTheMiddle(t *testing.T) {
	for name, begin := range map[string]func(*world){
		"of a replacement":    func(w *world) { w.deleteMachine("cp-1") },
		"of two replacements": func(w *world) { w.deleteMachine("cp-1"); w.deleteMachine("cp-2") },
		"of a rollout": func(w *world) {
			w.rollingUpdate(1)
			w.renewTemplate()
		},
		"of a scale-down": func(w *world) {
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
		},
		"of a remediation": func(w *world) {
			w.healthCheck = true
			w.hostDies("cp-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for steps := 0; steps < 15; steps += stride(7) {
				w := livingWorld(t, 4)
				begin(w)
				for range steps {
					w.live(nil)
				}
				w.must(w.client.Delete(context.Background(), w.controlPlane()))
				for range 10 {
					w.must(client.IgnoreNotFound(w.try()))
					w.departures()
				}
				NewWithT(t).Expect(w.machines()).To(BeEmpty(), "after %d steps", steps)
			}
		})
	}
}

// TestRemediationOfTwo: two hosts of five die, and a MachineHealthCheck without a limit marks both. One waits for the other, and neither
// for what only the other could bring.
func TestRemediationOfTwo(t *testing.T) {
	w := livingWorld(t, 5)
	w.healthCheck = true
	w.hostDies("cp-3")
	w.hostDies("cp-4")
	compareStory(t, w.settle(nil, func() bool {
		return !slices.Contains(w.names(), "cp-3") && !slices.Contains(w.names(), "cp-4") && w.whole()
	}))
}

// TestRemediation: a host that dies is replaced without a user, and the record of it goes when its replacement is there.
func TestRemediation(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.healthCheck = true
	w.hostDies("cp-1")
	compareStory(t, w.settle(nil, func() bool { return !slices.Contains(w.names(), "cp-1") && w.whole() }))
	for range 3 {
		w.live(nil)
	}
	g.Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
	g.Expect(w.machines()[2].Annotations).To(HaveKey(controlplanev1.RemediationForAnnotation))
	g.Expect(w.reason(controlplanev1.RemediatingCondition)).To(Equal(controlplanev1.NotRemediatingReason))
}
