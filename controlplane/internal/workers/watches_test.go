// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestArrivals: of the changes of a worker, those that decide looks at trigger a pass, and none of the others of its status.
func TestArrivals(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"its kubelet":    {func(m *clusterv1.Machine) { m.Status.NodeInfo.KubeletVersion = wanted }, true},
		"its Node":       {func(m *clusterv1.Machine) { m.Status.NodeInfo = nil }, true},
		"its version":    {func(m *clusterv1.Machine) { m.Spec.Version = wanted }, true},
		"its deletion":   {func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"its pause":      {func(m *clusterv1.Machine) { m.Annotations = paused }, true},
		"its MachineSet": {func(m *clusterv1.Machine) { m.OwnerReferences = metaOf("", "MachineSet", "b").OwnerReferences }, true},
		"its addresses":  {func(m *clusterv1.Machine) { m.Status.Addresses = clusterv1.MachineAddresses{{Address: "192.0.2.1"}} }, false},
		"its kernel":     {func(m *clusterv1.Machine) { m.Status.NodeInfo.KernelVersion = "6" }, false},
		"its conditions": {func(m *clusterv1.Machine) { m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			was := machine("a0", before, before)
			is := was.DeepCopy()
			tt.change(is)
			g.Expect(arrivals.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})).To(Equal(tt.want))
			master := is.DeepCopy()
			master.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			g.Expect(arrivals.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: master})).To(BeFalse(), "a control-plane Machine")
		})
	}
	g := NewWithT(t)
	g.Expect(arrivals.Create(event.CreateEvent{Object: machine("a0", before, "")})).To(BeTrue())
	g.Expect(arrivals.Delete(event.DeleteEvent{Object: machine("a0", before, "")})).To(BeTrue())
	g.Expect(arrivals.Generic(event.GenericEvent{Object: &corev1.Node{}})).To(BeFalse())
}

// TestWishes: a MachineDeployment or MachineSet triggers a pass by what is wanted of it, and not by its status.
func TestWishes(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   bool
	}{
		"its spec":   {func(d *clusterv1.MachineDeployment) { d.Generation = 2 }, true},
		"its pause":  {func(d *clusterv1.MachineDeployment) { d.Annotations = paused }, true},
		"its status": {func(d *clusterv1.MachineDeployment) { d.Status.Replicas = ptr.To[int32](2) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			was := deployment()
			is := was.DeepCopy()
			tt.change(is)
			NewWithT(t).Expect(wishes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})).To(Equal(tt.want))
		})
	}
}
