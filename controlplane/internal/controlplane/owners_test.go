// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// infra is an empty object of an infrastructure kind.
func infra(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(infraGroup.WithKind(kind))
	return o
}

// TestDeletionLeavesAForeignAgentClusterInstall: only the ClusterDeployment is the control plane's.
func TestDeletionLeavesAForeignAgentClusterInstall(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	foreign := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp", UID: "foreign"}}
	// The user's own AgentClusterInstall comes between our ClusterDeployment and ours, as when a GitOps tool applies one of the same name.
	w.refuse = func(o client.Object) error {
		if _, cd := o.(*hivev1.ClusterDeployment); cd {
			w.refuse = nil
			return w.client.Create(context.Background(), foreign.DeepCopy())
		}
		return nil
	}
	for range 4 {
		w.reconcile()
	}
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.NameConflictReason))
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("rename the control plane"))
	g.Expect(w.install().Labels).To(BeEmpty(), "it is the user's")
	// The user does what the message says: away with the control plane.
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	for range 6 {
		w.reconcile()
	}
	g.Expect(w.install()).NotTo(BeNil(), "the AgentClusterInstall of somebody else was deleted")
	g.Expect(w.deployment()).To(BeNil())
	g.Expect(w.controlPlane().Name).To(BeEmpty())
}

// TestTransientErrorIsNoConflict: the cache is late, and the API server cannot say whether a Machine exists.
func TestTransientErrorIsNoConflict(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool { return len(w.machines()) == 3 })
	// core gives the objects to their Machines.
	for _, m := range w.machines() {
		for _, o := range []client.Object{&bootstrapv1.OpenshiftAssistedConfig{}, infra("Metal3Machine")} {
			w.must(w.client.Get(context.Background(), client.ObjectKeyFromObject(&m), o))
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID, Controller: new(true),
			}})
			w.must(w.client.Update(context.Background(), o))
		}
	}
	w.r.Client = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, machines := list.(*clusterv1.MachineList); machines {
				return nil // the cache has not seen them yet
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.r.APIReader = w.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, machine := o.(*clusterv1.Machine); machine {
				return apierrors.NewServiceUnavailable("etcd leader changed")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	g.Expect(w.try()).To(MatchError(ContainSubstring("etcd leader changed")))
	g.Expect(w.reason(controlplanev1.InstalledCondition)).NotTo(Equal(controlplanev1.NameConflictReason))
}

// TestOwnersOfTheKubeconfigStay: the kubeconfig is renewed, and others have added an owner and a key.
func TestOwnersOfTheKubeconfigStay(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.optOut()
	w.run(nil, w.available)
	s := w.kubeconfig()
	s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "backup", UID: "backup"})
	s.Data["extra"] = []byte("of somebody else")
	w.must(w.client.Update(context.Background(), s))
	source := &corev1.Secret{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "cp-admin-kubeconfig"}, source))
	source.Data[assisted.KubeconfigKey] = []byte(kubeconfigOf("rotated"))
	w.must(w.client.Update(context.Background(), source))
	w.reconcile()
	g.Expect(w.kubeconfig().OwnerReferences).To(HaveLen(2))
	g.Expect(w.kubeconfig().Data).To(HaveKey("extra"))
	g.Expect(string(w.kubeconfig().Data["value"])).To(ContainSubstring("rotated"))
}

// TestDeletionWaitsForOrphaning: after kubectl delete --cascade=orphan, garbage collection takes the Machines from the control plane one
// after the other, and its finalizer last.
func TestDeletionWaitsForOrphaning(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	cp := w.controlPlane()
	cp.Finalizers = append(cp.Finalizers, metav1.FinalizerOrphanDependents)
	w.must(w.client.Update(context.Background(), cp))
	w.must(w.client.Delete(context.Background(), cp))
	w.orphan("cp-1")
	for range 6 {
		w.reconcile()
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.reason(controlplanev1.DeletingCondition)).To(Equal(controlplanev1.WaitingForOrphaningReason))
	g.Expect(w.message(controlplanev1.DeletingCondition)).To(ContainSubstring("finalizer orphan"))

	stale := w.machines()[0]
	w.orphan("cp-0")
	w.orphan("cp-2")
	cp = w.controlPlane()
	cp.Finalizers = slices.DeleteFunc(cp.Finalizers, func(f string) bool { return f == metav1.FinalizerOrphanDependents })
	w.must(w.client.Update(context.Background(), cp))
	v := &view.View{ControlPlane: cp}
	err := w.r.deleteMachines(context.Background(), v, []*clusterv1.Machine{&stale}, "its owner is in the cache still")
	g.Expect(err).To(HaveOccurred())
	g.Expect(kube.OutcomeOf(err).Err()).NotTo(HaveOccurred(), "a conflict")
	w.reconcile()
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.reason(controlplanev1.DeletingCondition)).To(Equal(controlplanev1.WaitingForOrphanedMachinesReason))
}

// TestDeletionWaitsForOrphans: the Machines were orphaned on purpose, and their Nodes run.
func TestDeletionWaitsForOrphans(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	for _, m := range w.machines() {
		w.orphan(m.Name) // As kubectl delete --cascade=orphan does.
	}
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	for range 6 {
		w.reconcile()
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.deployment()).NotTo(BeNil())
	g.Expect(w.install()).NotTo(BeNil())
	g.Expect(w.reason(controlplanev1.DeletingCondition)).To(Equal(controlplanev1.WaitingForOrphanedMachinesReason))
	g.Expect(w.message(controlplanev1.DeletingCondition)).To(ContainSubstring("cp-0, cp-1, cp-2"))
	for _, m := range w.machines() {
		w.vanish(&m)
	}
	for range 4 {
		w.reconcile()
	}
	g.Expect(w.deployment()).To(BeNil())
	g.Expect(w.controlPlane().Name).To(BeEmpty())
}
