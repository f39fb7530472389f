// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// freezeControlPlane makes the cache show the control plane as it was.
func (w *world) freezeControlPlane(old *controlplanev1.OpenshiftAssistedControlPlane) {
	w.r.Client = w.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if cp, ok := o.(*controlplanev1.OpenshiftAssistedControlPlane); ok {
				old.DeepCopyInto(cp)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// TestNoMachineGoesByAnOldSpec: the cache shows the replicas of before a scale-up. The Machines that were made since are not too many.
func TestNoMachineGoesByAnOldSpec(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.run(nil, func() bool { return len(w.machines()) == 1 })
	old := w.controlPlane()
	cp := w.controlPlane()
	*cp.Spec.Replicas, cp.Generation = 3, cp.Generation+1
	w.must(w.client.Update(t.Context(), cp))
	w.run(nil, func() bool { return len(w.machines()) == 3 })
	w.freezeControlPlane(old)
	for range 3 {
		_ = w.try() // Writing to the control plane of before conflicts.
	}
	g.Expect(w.machines()).To(HaveLen(3))

	cp = w.controlPlane()
	*cp.Spec.Replicas, cp.Generation = 1, cp.Generation+1
	w.must(w.client.Update(t.Context(), cp))
	w.r.Client = w.client
	w.reconcile()
	g.Expect(w.machines()).To(HaveLen(1))
}

// TestNoHostGoesAtOnceByAnOldRecord: the cache shows the control plane of before its cluster was recorded. A host of that cluster goes when
// its member has left etcd, and not at once. The annotation InstalledClusterAnnotation and status.initialization.controlPlaneInitialized
// are written in two requests: either of them shows that the cluster is installed.
func TestNoHostGoesAtOnceByAnOldRecord(t *testing.T) {
	forgetRecord := func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		delete(cp.Annotations, controlplanev1.InstalledClusterAnnotation)
	}
	forgetFlag := func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Status.Initialization.ControlPlaneInitialized = nil
	}
	for name, lacks := range map[string]func(*controlplanev1.OpenshiftAssistedControlPlane){
		"the annotation and the status tell of it": func(*controlplanev1.OpenshiftAssistedControlPlane) {},
		"the annotation tells of it":               forgetFlag,
		"the status tells of it":                   forgetRecord,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := livingWorld(t, 3)
			w.finalize()
			w.waitsInOurHook()
			old := w.controlPlane()
			forgetRecord(old)
			forgetFlag(old)
			w.freezeControlPlane(old)
			now := w.controlPlane()
			lacks(now)
			w.must(w.client.Update(t.Context(), now))
			now = w.controlPlane()
			lacks(now)
			w.must(w.client.Status().Update(t.Context(), now))
			for range 3 {
				_ = w.try() // Writing to the control plane of before conflicts.
			}
			g.Expect(w.machines()[1].Annotations).To(HaveKey(controlplanev1.EtcdHookAnnotation))
		})
	}
}

// waitsInOurHook has the second Machine wait in nothing but our hook.
func (w *world) waitsInOurHook() {
	m := w.machines()[1]
	w.vanish(&m)
	m = w.machines()[1]
	for hook := range m.Annotations {
		if hook != controlplanev1.EtcdHookAnnotation && hook != controlplanev1.InstallAttemptAnnotation {
			delete(m.Annotations, hook)
		}
	}
	w.must(w.client.Update(w.t.Context(), &m))
	w.waitsInHook(&m, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
}

// TestNoInstallGoesWithHostsOfMachines: the control plane is deleted, and the cache shows no Machines. Hosts of those that exist are bound,
// which assisted-service would take from their cluster.
func TestNoInstallGoesWithHostsOfMachines(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	for _, m := range w.machines() {
		w.orphan(m.Name)
	}
	w.must(w.client.Delete(t.Context(), w.controlPlane()))
	w.r.Client = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, machines := list.(*clusterv1.MachineList); machines {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	for range 3 {
		w.reconcile()
	}
	g.Expect(w.deployment()).NotTo(BeNil())
	g.Expect(w.install()).NotTo(BeNil())
	for _, m := range w.machines() {
		w.vanish(&m)
	}
	for range 3 {
		w.reconcile()
	}
	g.Expect(w.deployment()).To(BeNil())
}

// TestChangedObjectsAreLeftAlone: an Agent that has changed since it was read is not unbound, and a Machine with the name of one that was
// read keeps its hook.
func TestChangedObjectsAreLeftAlone(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	v := &view.View{ControlPlane: w.controlPlane()}
	for _, agent := range w.agents() {
		v.Install.Agents = append(v.Install.Agents, &agent)
	}
	agent := w.agents()[0]
	agent.Spec.ClusterDeploymentName = &assisted.ClusterReference{Namespace: namespace, Name: "another"}
	w.must(w.client.Update(t.Context(), &agent))
	g.Expect(w.r.unbind(t.Context(), v, []string{agent.Name})).To(Succeed())
	g.Expect(w.agents()[0].Spec.ClusterDeploymentName).To(HaveField("Name", "another"))
	g.Expect(w.agents()[0].Spec.Approved).To(BeTrue())

	before := w.machines()[1]
	w.vanish(&before)
	after := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: before.Name, Labels: before.Labels,
		Annotations: before.Annotations, UID: "another"}, Spec: before.Spec}
	w.must(w.client.Create(t.Context(), after))
	g.Expect(w.r.removeHook(t.Context(), v, &before, controlplanev1.EtcdHookAnnotation)).To(Succeed())
	g.Expect(w.machines()[1].Annotations).To(HaveKey(controlplanev1.EtcdHookAnnotation))
}
