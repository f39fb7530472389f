// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestConnectsToItsOwnClustersOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		ref  clusterv1.ContractVersionedObjectReference
		want bool
	}{
		"ours": {clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io",
			Kind: "OpenshiftAssistedControlPlane"}, true},
		"kubeadm's": {clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane"},
			false},
		"a namesake's": {clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "OpenshiftAssistedControlPlane"}, false},
		"without any":  {clusterv1.ContractVersionedObjectReference{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneRef: tt.ref}}
			NewWithT(t).Expect(ours(cluster)).To(Equal(tt.want))
		})
	}
}

func TestCachedOperatorsAreSmall(t *testing.T) {
	of := func(name string) *configv1.ClusterOperator {
		return &configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: "uid", ResourceVersion: "1", Annotations: map[string]string{"a": "b"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			},
			Status: configv1.ClusterOperatorStatus{
				Conditions:     []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorAvailable}},
				RelatedObjects: []configv1.ObjectReference{{Name: "x"}},
			},
		}
	}
	kept := func(name string, conditions []configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
		return &configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", ResourceVersion: "1"},
			Status:     configv1.ClusterOperatorStatus{Conditions: conditions},
		}
	}
	g := NewWithT(t)
	long := of(OperatorEtcd)
	long.Status.Conditions = append(long.Status.Conditions, configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable},
		configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorDegraded, Message: strings.Repeat("m", 2*maxMessage)})
	read := operatorOf(long)
	g.Expect(keepConditions(of(OperatorEtcd))).To(Equal(kept(OperatorEtcd, of(OperatorEtcd).Status.Conditions)))
	g.Expect(keepConditions(of("ingress"))).To(BeNil(), "nobody reads it")
	small, ok := keepConditions(long).(*configv1.ClusterOperator)
	g.Expect(ok).To(BeTrue())
	g.Expect(small.Status.Conditions).To(HaveLen(2))
	g.Expect(small.Status.Conditions[1].Message).To(HaveLen(maxMessage + len("…")))
	g.Expect(operatorOf(small)).To(Equal(read), "all that is read is kept")
}

func TestCachedEtcdIsSmall(t *testing.T) {
	g := NewWithT(t)
	etcd := &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{
		Name: "cluster", UID: "uid", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	etcd.Spec.ObservedConfig.Raw = []byte("{}")
	etcd.Status.LatestAvailableRevision = 8
	etcd.Status.Conditions = []operatorv1.OperatorCondition{{Type: "Other"}, {Type: etcdMembersDegraded, Message: "m"}}
	etcd.Status.NodeStatuses = []operatorv1.NodeStatus{
		{NodeName: "m-0", CurrentRevision: 7, TargetRevision: 8, LastFailedRevisionErrors: []string{"long"}},
	}
	kept := &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "uid", ResourceVersion: "1"}}
	kept.Status.LatestAvailableRevision = 8
	kept.Status.Conditions = []operatorv1.OperatorCondition{{Type: etcdMembersDegraded, Message: "m"}}
	kept.Status.NodeStatuses = []operatorv1.NodeStatus{{NodeName: "m-0", CurrentRevision: 7, TargetRevision: 8}}
	g.Expect(keepReport(etcd)).To(Equal(kept))
	read, ok := keepReport(etcd).(*operatorv1.Etcd)
	g.Expect(ok).To(BeTrue())
	g.Expect(reportOf(read)).To(Equal(reportOf(etcd)), "all that is read is kept")
}

func TestAnswersAreForgotten(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	answers := newMemory(time.Minute, clock)
	cluster, read := client.ObjectKey{Namespace: "ns", Name: "c"}, map[string]Operator{OperatorEtcd: {}}
	g.Expect(answers.last(cluster)).To(BeNil())
	answers.keep(cluster, read)
	clock.Step(time.Minute - time.Second)
	g.Expect(answers.last(cluster)).To(Equal(read), "one failed read is no news")
	g.Expect(answers.last(client.ObjectKey{Namespace: "ns", Name: "other"})).To(BeNil())
	clock.Step(2 * time.Second)
	g.Expect(answers.last(cluster)).To(BeNil(), "a read that fails for longer is")
	(*Memory)(nil).keep(cluster, read)
	g.Expect((*Memory)(nil).last(cluster)).To(BeNil())
}
