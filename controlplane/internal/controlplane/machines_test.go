// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// try runs one pass, which may fail.
func (w *world) try() error {
	_, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	return err
}

// intercepted is the world's client with some calls changed.
func (w *world) intercepted(funcs interceptor.Funcs) client.Client {
	return interceptor.NewClient(w.client.(client.WithWatch), funcs)
}

// changeCluster writes the Cluster and its status.
func (w *world) changeCluster(change func(*clusterv1.Cluster)) {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: clusterName}, cluster))
	change(cluster)
	status := cluster.Status
	w.must(w.client.Update(context.Background(), cluster))
	cluster.Status = status
	w.must(w.client.Status().Update(context.Background(), cluster))
}

// changeSpec writes the control plane.
func (w *world) changeSpec(change func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)) {
	w.t.Helper()
	cp := w.controlPlane()
	change(&cp.Spec)
	w.must(w.client.Update(context.Background(), cp))
}

func (w *world) message(condition string) string {
	return conditions.GetMessage(w.controlPlane(), condition)
}

// infraMachines are the infrastructure machines.
func (w *world) infraMachines() []unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(infraGroup.WithKind("Metal3MachineList"))
	w.must(w.client.List(context.Background(), list))
	return list.Items
}

func testFinalizerFirst(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	created := 0
	w.refuse = func(o client.Object) error {
		created++
		if controllerutil.ContainsFinalizer(w.controlPlane(), controlplanev1.ControlPlaneFinalizer) {
			return nil
		}
		return errors.New(o.GetName() + " is created before the finalizer")
	}
	g.Expect(w.try()).To(Succeed())
	g.Expect(created).To(BeNumerically(">", 0))
}

func testWaits(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	nothing := func(reason string) {
		t.Helper()
		for range 3 {
			w.reconcile()
		}
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(reason))
		g.Expect(w.machines()).To(BeEmpty())
		g.Expect(w.install()).To(BeNil())
	}
	endpoint := clusterv1.APIEndpoint{}
	w.changeCluster(func(c *clusterv1.Cluster) {
		c.Status.Initialization.InfrastructureProvisioned = nil
		endpoint, c.Spec.ControlPlaneEndpoint = c.Spec.ControlPlaneEndpoint, endpoint
	})
	nothing(controlplanev1.WaitingForClusterInfrastructureReason)
	w.changeCluster(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = new(true) })
	nothing(controlplanev1.WaitingForClusterInfrastructureReason)
	w.changeCluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint })
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.APIVIPs = []string{"192.0.2.9"} })
	nothing(controlplanev1.InvalidControlPlaneEndpointReason)
	g.Expect(w.message(controlplanev1.AvailableCondition)).To(And(ContainSubstring(endpoint.Host), ContainSubstring("192.0.2.9")))
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.APIVIPs = []string{endpoint.Host} })
	w.run(nil, w.available)
}

func testMachinesAtOnce(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 5, 0)
	for len(w.machines()) == 0 {
		w.reconcile()
	}
	g.Expect(w.machines()).To(HaveLen(5))
	g.Expect(w.agents()).To(BeEmpty())
}

func testInfraMachine(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{
			Labels: map[string]string{"pool": "masters"}, Annotations: map[string]string{"note": "yes"},
		}
	})
	w.run(nil, func() bool { return len(w.machines()) == 1 })
	machine, infraMachine := w.machines()[0], w.infraMachines()[0]
	g.Expect(infraMachine.GetName()).To(Equal(machine.Name))
	g.Expect(machine.Spec.InfrastructureRef).To(Equal(clusterv1.ContractVersionedObjectReference{
		APIGroup: infraGroup.Group, Kind: "Metal3Machine", Name: machine.Name,
	}))
	g.Expect(infraMachine.GetLabels()).To(And(Equal(machine.Labels), HaveKeyWithValue("pool", "masters")))
	g.Expect(infraMachine.GetAnnotations()).To(And(
		HaveKeyWithValue("note", "yes"),
		HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, "t"),
		HaveKeyWithValue(clusterv1.TemplateClonedFromGroupKindAnnotation, "Metal3MachineTemplate."+infraGroup.Group)))
	g.Expect(infraMachine.GetOwnerReferences()).To(HaveLen(1))
	g.Expect(infraMachine.GetOwnerReferences()[0].UID).To(BeEquivalentTo("cp"))
	g.Expect(metav1.GetControllerOf(&infraMachine)).To(BeNil())
}

// testFailedCreates lets every single create of the first passes fail once.
func testFailedCreates(t *testing.T) {
	// ClusterImageSet, ClusterDeployment and AgentClusterInstall, and three objects for each Machine, of which the first is tried before.
	const creates = 3 + 3*3 + 1
	for failing := 1; failing <= creates; failing++ {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		count := 0
		w.refuse = func(client.Object) error {
			if count++; count == failing {
				return errors.New("injected")
			}
			return nil
		}
		failed := 0
		for range 6 {
			if w.try() != nil {
				failed++
			}
		}
		g.Expect(failed).To(Equal(1), "create %d", failing)
		configs := &bootstrapv1.OpenshiftAssistedConfigList{}
		g.Expect(w.client.List(context.Background(), configs)).To(Succeed())
		var machines, infraMachines, names []string
		for _, m := range w.machines() {
			machines = append(machines, m.Name)
		}
		for _, m := range w.infraMachines() {
			infraMachines = append(infraMachines, m.GetName())
		}
		for i := range configs.Items {
			names = append(names, configs.Items[i].Name)
		}
		g.Expect(machines).To(ConsistOf("cp-0", "cp-1", "cp-2"), "create %d", failing)
		g.Expect(infraMachines).To(ConsistOf(machines), "create %d", failing)
		g.Expect(names).To(ConsistOf(machines), "create %d", failing)
	}
}

func testStaleCache(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.r.Client = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, machines := list.(*clusterv1.MachineList); machines {
				return nil // As if the cache had not seen any of them.
			}
			return c.List(ctx, list, opts...)
		},
	})
	for range 50 {
		g.Expect(w.try()).To(Succeed())
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.infraMachines()).To(HaveLen(3))
	g.Expect(w.reason(controlplanev1.InstalledCondition)).NotTo(Equal(controlplanev1.NameConflictReason))
}

func testTemplateOwner(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.run(nil, func() bool { return len(w.machines()) == 1 })
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(infraGroup.WithKind("Metal3MachineTemplate"))
	g.Expect(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "t"}, template)).To(Succeed())
	g.Expect(template.GetOwnerReferences()).To(ConsistOf(metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: clusterName, UID: "cluster",
	}))
}

func testFailureDomains(t *testing.T) {
	domain := func(name string, controlPlane bool) clusterv1.FailureDomain {
		return clusterv1.FailureDomain{Name: name, ControlPlane: &controlPlane}
	}
	tests := []struct {
		name    string
		domains []clusterv1.FailureDomain
		// want are the numbers of Machines in the domains, by name.
		want map[string]int
	}{
		{"three", []clusterv1.FailureDomain{domain("a", true), domain("b", true), domain("c", true)}, map[string]int{"a": 1, "b": 1, "c": 1}},
		{"one is for workers", []clusterv1.FailureDomain{domain("a", true), domain("b", false)}, map[string]int{"a": 3}},
		{"none", nil, map[string]int{"": 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 3, 0)
			w.changeCluster(func(c *clusterv1.Cluster) { c.Status.FailureDomains = tt.domains })
			w.run(nil, func() bool { return len(w.machines()) == 3 })
			got := map[string]int{}
			for _, m := range w.machines() {
				got[m.Spec.FailureDomain]++
			}
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

// orphan removes the controller of a Machine.
func (w *world) orphan(name string) *clusterv1.Machine {
	w.t.Helper()
	machine := &clusterv1.Machine{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, machine))
	machine.OwnerReferences, machine.Annotations = nil, nil
	w.must(w.client.Update(context.Background(), machine))
	return machine
}

func testAdoption(t *testing.T) {
	for name, until := range map[string]func(*world) bool{
		"before the installation": func(w *world) bool { return len(w.machines()) == 3 }, "afterwards": (*world).available,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 3, 0)
			w.run(nil, func() bool { return until(w) })
			orphan := w.orphan("cp-1")
			for range 3 {
				w.reconcile()
			}
			g.Expect(w.machines()).To(HaveLen(3), "it is neither replaced nor taken for one of an earlier attempt")
			g.Expect(w.machines()[1].UID).To(Equal(orphan.UID))
			g.Expect(metav1.IsControlledBy(&w.machines()[1], w.controlPlane())).To(BeTrue())
			w.run(nil, w.available)
		})
	}
}

func testNoAdoptionWhileDeleting(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	w.orphan("cp-1")
	w.r.APIReader = w.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, ok := o.(*controlplanev1.OpenshiftAssistedControlPlane); ok {
				o.SetDeletionTimestamp(&metav1.Time{Time: w.now})
			}
			return err
		},
	})
	for range 3 {
		w.reconcile()
	}
	g.Expect(w.machines()[1].OwnerReferences).To(BeEmpty())
}

func testMixedOwnership(t *testing.T) {
	foreign := func(owner []metav1.OwnerReference, configKind string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "foreign", OwnerReferences: owner,
			Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachineControlPlaneLabel: ""},
		}}
		m.Spec.Bootstrap.ConfigRef.Kind = configKind
		return m
	}
	for name, machine := range map[string]*clusterv1.Machine{
		"of another controller": foreign([]metav1.OwnerReference{{Kind: "KubeadmControlPlane", Name: "x", UID: "x", Controller: new(true)}},
			"OpenshiftAssistedConfig"),
		"of another provider": foreign(nil, "KubeadmConfig"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 3, 0)
			g.Expect(w.client.Create(context.Background(), machine.DeepCopy())).To(Succeed())
			for range 3 {
				w.reconcile()
			}
			g.Expect(w.machines()).To(HaveLen(1))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.MixedOwnershipReason))
			g.Expect(w.client.Delete(context.Background(), machine.DeepCopy())).To(Succeed())
			w.run(nil, w.available)

			g.Expect(w.client.Create(context.Background(), machine.DeepCopy())).To(Succeed())
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(5)) })
			for range 3 {
				w.reconcile()
			}
			g.Expect(w.machines()).To(HaveLen(3 + 1))
			g.Expect(w.available()).To(BeTrue(), "the cluster itself is well")
			g.Expect(w.message(controlplanev1.AvailableCondition)).To(ContainSubstring("(foreign)"))
			g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("(foreign)"))
		})
	}
}

func testRefusedChange(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.run(nil, w.available)
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, machine := o.(*clusterv1.Machine); machine {
				return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), o.GetName(), nil)
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{
			{Key: "a", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
		}
	})
	g.Expect(w.try()).To(Succeed(), "it is told, and not tried again and again")
	g.Expect(conditions.Get(&w.machines()[0], clusterv1.MachineUpToDateCondition)).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("is refused"))))
	w.reconcile()
	g.Expect(w.reason(controlplanev1.MachinesUpToDateCondition)).To(Equal(controlplanev1.MachinesNotUpToDateReason))
}

func testScalingIsExplained(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	scale := func(replicas int32) {
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = &replicas })
		for range 3 {
			w.reconcile()
		}
	}
	w.live(nil)
	scale(5)
	g.Expect(w.machines()).To(HaveLen(4), "one after the other")
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).
		To(Equal("Scaling up from 4 to 5 replicas is blocked because:\n* Machine cp-3 has no Node yet"))
	w.core()
	w.reconcile()
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(Equal("Scaling up from 4 to 5 replicas is blocked because:\n" +
		"* etcd has 3 members, and 4 control-plane Machines have Nodes: the host of the newest has to join it first"))
	w.settle(nil, w.whole)
	g.Expect(w.machines()).To(HaveLen(5))
	scale(3)
	g.Expect(w.reason(controlplanev1.ScalingDownCondition)).To(Equal(controlplanev1.ScalingDownReason))
	g.Expect(w.message(controlplanev1.ScalingDownCondition)).To(HavePrefix("Scaling down from 5 to 3 replicas"))
	w.settle(nil, w.whole)
}
