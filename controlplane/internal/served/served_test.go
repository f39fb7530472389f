// SPDX-License-Identifier: Apache-2.0

package served

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestResumed: of the changes of a control plane, those by which it is no longer paused trigger a pass, and none of its status.
func TestResumed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*controlplanev1.OpenshiftAssistedControlPlane)
		want   bool
	}{
		"its status": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.ReadyReplicas = ptr.To[int32](2) }, false},
		"its replicas": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Replicas, cp.Generation = ptr.To[int32](3), 2
		}, false},
		"its annotation": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Annotations = nil }, true},
		"its label": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Labels = map[string]string{clusterv1.WatchLabel: "other"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &controlplanev1.OpenshiftAssistedControlPlane{}
			before.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			after := before.DeepCopy()
			tt.change(after)
			NewWithT(t).Expect(Resumed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tt.want))
		})
	}
}

func TestCluster(t *testing.T) {
	key := client.ObjectKey{Namespace: "ns", Name: "c"}
	for name, tt := range map[string]struct {
		change func(*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane)
		filter string
		served bool
	}{
		"a control plane of this provider": {func(*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane) {}, "", true},
		"another provider's control plane": {func(c *clusterv1.Cluster, _ *controlplanev1.OpenshiftAssistedControlPlane) {
			c.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane"
		}, "", false},
		"no control plane yet": {func(c *clusterv1.Cluster, _ *controlplanev1.OpenshiftAssistedControlPlane) {
			c.Spec.ControlPlaneRef.Name = "other"
		}, "", false},
		"a paused Cluster": {func(c *clusterv1.Cluster, _ *controlplanev1.OpenshiftAssistedControlPlane) {
			c.Spec.Paused = ptr.To(true)
		}, "", false},
		"a paused control plane": {func(_ *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}, "", false},
		"a control plane that is being deleted": {func(_ *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Finalizers, cp.DeletionTimestamp = []string{"example.com/kept"}, ptr.To(metav1.Now())
		}, "", false},
		"another manager's control plane": {func(*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane) {}, "mine", false},
		"this manager's control plane": {func(_ *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Labels = map[string]string{clusterv1.WatchLabel: "mine"}
		}, "mine", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "OpenshiftAssistedControlPlane", Name: "cp"}
			cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"}}
			tt.change(cluster, cp)
			scheme := runtime.NewScheme()
			g.Expect(errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme))).To(Succeed())
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, cp).Build()
			foundCluster, foundControlPlane, err := Cluster(t.Context(), reader, key, tt.filter)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(foundCluster != nil).To(Equal(tt.served))
			g.Expect(foundControlPlane != nil).To(Equal(tt.served))
			none, _, err := Cluster(t.Context(), reader, client.ObjectKey{Namespace: "ns", Name: "gone"}, tt.filter)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(none).To(BeNil())
		})
	}
}

func TestByLabel(t *testing.T) {
	g := NewWithT(t)
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	g.Expect(ByLabel(t.Context(), machine)).To(BeEmpty())
	machine.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	g.Expect(ByLabel(t.Context(), machine)).To(ConsistOf(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "c"}}))
}
