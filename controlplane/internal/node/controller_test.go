// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload/workloadtest"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const providerID = "dev:///m-0"

var born = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func machine() *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m-0", Namespace: "ns", CreationTimestamp: born, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
	}}
	m.Spec.ClusterName, m.Spec.ProviderID = "demo", providerID
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: "DevMachine", Name: "m-0",
	}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: "m-0",
	}
	return m
}

func TestReconcile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*clusterv1.Cluster, *clusterv1.Machine, *workloadtest.Nodes)
		set    string
		idle   bool
		event  bool
	}{
		{name: "the Node has none", change: func(*clusterv1.Cluster, *clusterv1.Machine, *workloadtest.Nodes) {}, set: providerID},
		{name: "the Node has it", change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, i *workloadtest.Nodes) {
			i.Nodes[0].Spec.ProviderID = providerID
		}},
		{name: "the Node has another one", change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine,
			i *workloadtest.Nodes) {
			i.Nodes[0].Spec.ProviderID = "other"
		}, event: true},
		{name: "there is no Node", change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, i *workloadtest.Nodes) { i.Nodes = nil }},
		{name: "the Node is of another Machine", change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, i *workloadtest.Nodes) {
			i.Nodes[0].Name = "m-1"
		}},
		{name: "the Node is of an earlier Machine of this name", change: func(_ *clusterv1.Cluster, _ *clusterv1.Machine, i *workloadtest.Nodes) {
			i.Nodes[0].CreationTimestamp = metav1.NewTime(born.Add(-time.Minute))
		}},
		{name: "infrastructure has given no provider ID", change: func(_ *clusterv1.Cluster, m *clusterv1.Machine,
			_ *workloadtest.Nodes) {
			m.Spec.ProviderID = ""
		}, idle: true},
		{name: "core knows the Node", change: func(_ *clusterv1.Cluster, m *clusterv1.Machine, _ *workloadtest.Nodes) {
			m.Status.NodeRef.Name = "m-0"
		}, idle: true},
		{name: "Metal3 sets it itself", change: func(_ *clusterv1.Cluster, m *clusterv1.Machine, _ *workloadtest.Nodes) {
			m.Spec.InfrastructureRef.Kind = metal3.MachineKind
		}, idle: true},
		{name: "another bootstrap provider", change: func(_ *clusterv1.Cluster, m *clusterv1.Machine, _ *workloadtest.Nodes) {
			m.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig"
		}, idle: true},
		{name: "another control plane provider", change: func(c *clusterv1.Cluster, _ *clusterv1.Machine, _ *workloadtest.Nodes) {
			c.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane"
		}, idle: true},
		{name: "paused", change: func(c *clusterv1.Cluster, _ *clusterv1.Machine, _ *workloadtest.Nodes) {
			c.Spec.Paused = ptr.To(true)
		}, idle: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme))).To(Succeed())
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}
			cluster.Spec.ControlPlaneRef.Kind = "OpenshiftAssistedControlPlane"
			m := machine()
			workload := &workloadtest.Nodes{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "m-0", CreationTimestamp: born}}}}
			tt.change(cluster, m, workload)
			recorder := events.NewFakeRecorder(1)
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, m).Build()
			r := &Reconciler{Client: c, Nodes: workload, Recorder: recorder}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(workload.Set).To(Equal(tt.set))
			asked := 1
			if tt.idle {
				asked = 0
			}
			g.Expect(workload.Asked).To(Equal(asked), "a Machine that does not wait costs no request to its cluster")
			if tt.event {
				g.Expect(recorder.Events).To(Receive(ContainSubstring(controlplanev1.EventProviderIDMismatch)))
			}
			g.Expect(recorder.Events).NotTo(Receive())
		})
	}
}

// TestWaiting: when a cluster connects, those of its Machines that wait are looked at, and no others.
func TestWaiting(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	joined, other := machine(), machine()
	joined.Name, joined.Status.NodeRef.Name = "m-1", "m-1"
	other.Name, other.Labels = "m-2", map[string]string{clusterv1.ClusterNameLabel: "other"}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine(), joined, other).Build()}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}
	g.Expect(r.waiting(t.Context(), cluster)).To(ConsistOf(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m-0"}}))
}
