// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
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
	g.Expect(keepConditions(of(OperatorEtcd))).To(Equal(kept(OperatorEtcd, of(OperatorEtcd).Status.Conditions)))
	g.Expect(keepConditions(of("ingress"))).To(Equal(kept("ingress", nil)))
	g.Expect(keepConditions("something else")).To(Equal("something else"))
}

func TestAnswersAreForgotten(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	answers := newAnswers(time.Minute, clock)
	cluster, read := client.ObjectKey{Namespace: "ns", Name: "c"}, map[string]Operator{OperatorEtcd: {}}
	g.Expect(answers.last(cluster)).To(BeNil())
	answers.keep(cluster, read)
	answers.keep(cluster, nil)
	clock.Step(time.Minute - time.Second)
	g.Expect(answers.last(cluster)).To(Equal(read), "one failed read is no news")
	g.Expect(answers.last(client.ObjectKey{Namespace: "ns", Name: "other"})).To(BeNil())
	clock.Step(2 * time.Second)
	g.Expect(answers.last(cluster)).To(BeNil(), "a read that fails for longer is")
	(*Answers)(nil).keep(cluster, read)
	g.Expect((*Answers)(nil).last(cluster)).To(BeNil())
}
