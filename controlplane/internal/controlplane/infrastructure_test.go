// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// newOtherWorld is a world whose control plane has machines of a provider other than Metal3. The manager may list its kinds once allowed
// says so.
func newOtherWorld(t *testing.T, allowed *bool) *world {
	t.Helper()
	w := newWorld(t, 1, 0)
	template := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"size": "large"}}}},
	}
	template.SetGroupVersionKind(infraGroup.WithKind("DevMachineTemplate"))
	template.SetNamespace(namespace)
	template.SetName("t")
	for _, o := range []client.Object{crd("devmachines"), crd("devmachinetemplates"), template} {
		w.must(w.client.Create(context.Background(), o))
	}
	cp := w.controlPlane()
	cp.Spec.MachineTemplate.Spec.InfrastructureRef.Kind = "DevMachineTemplate"
	w.must(w.client.Update(context.Background(), cp))
	w.r.Infrastructure.Live = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if !*allowed {
				return apierrors.NewForbidden(schema.GroupResource{Group: infraGroup.Group, Resource: "devmachinetemplates"}, "", nil)
			}
			return c.List(ctx, list, opts...)
		},
	})
	return w
}

// TestInfrastructureNotAllowed: a control plane whose machines are of a kind that the manager may not read says which role is missing and
// does what else is to be done. It goes on when the role is there, and it can be deleted without it.
func TestInfrastructureNotAllowed(t *testing.T) {
	g := NewWithT(t)
	allowed := false
	w := newOtherWorld(t, &allowed)
	for range 5 {
		w.reconcile()
	}
	g.Expect(w.reconcile().RequeueAfter).To(Equal(infrastructure.RetryNotAllowed))
	g.Expect(conditions.GetMessage(w.controlPlane(), controlplanev1.ScalingUpCondition)).To(ContainSubstring(
		"DevMachineTemplate t cannot be read: failed to retrieve DevMachineTemplate ns/t: the manager may not list " +
			"devmachinetemplates.infrastructure.cluster.x-k8s.io: allow it in a ClusterRole with the label " +
			`controlplane.cluster.x-k8s.io/aggregate-to-openshift-assisted: "true"`))
	g.Expect(w.install()).NotTo(BeNil())

	allowed = true
	w.run(nil, func() bool { return len(w.machines()) == 1 })
	machine := w.machines()[0]
	g.Expect(machine.Spec.InfrastructureRef.Kind).To(Equal("DevMachine"))
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(infraGroup.WithKind("DevMachine"))
	g.Expect(w.client.Get(context.Background(), client.ObjectKeyFromObject(&machine), made)).To(Succeed())
	size, _, _ := unstructured.NestedString(made.Object, "spec", "size")
	g.Expect(size).To(Equal("large"))
}

// TestTemplateThatDoesNotExist: a control plane that was applied before its infrastructure template says so, does what else is to be done,
// and goes on soon after the template was created, without an error and its back-off.
func TestTemplateThatDoesNotExist(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	template := infra("Metal3MachineTemplate")
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "t"}, template))
	w.must(w.client.Delete(context.Background(), template))
	for range 5 {
		w.reconcile()
	}
	g.Expect(w.reconcile().RequeueAfter).To(Equal(templateRetryInterval))
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("Metal3MachineTemplate t cannot be read: it does not exist"))
	g.Expect(w.install()).NotTo(BeNil())
	g.Expect(w.machines()).To(BeEmpty())

	template.SetResourceVersion("")
	w.must(w.client.Create(context.Background(), template))
	w.run(nil, func() bool { return len(w.machines()) == 3 })
	g.Expect(w.reconcile().RequeueAfter).To(BeZero())

	w.run(nil, w.available)
	w.must(w.client.Delete(context.Background(), template))
	g.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", 24*time.Hour), "nothing is made of it, and the token is renewed some day")
}

// TestTemplateThatCannotBeReadInTime: a template that a broken informer keeps from being read stops nothing but new Machines.
func TestTemplateThatCannotBeReadInTime(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.unfilled("Metal3MachineTemplate")
	g.Expect(w.try()).To(Succeed())
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(BeEmpty(), "the manager has begun to fill its cache a moment ago")
	w.now = w.now.Add(manager.FillingTime)
	var err error
	for range 5 {
		err = w.try()
	}
	g.Expect(err).To(MatchError(ContainSubstring("Metal3MachineTemplate t cannot be read")), "it is tried again")
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("the cache is not filled"))
	g.Expect(w.install()).NotTo(BeNil())
	g.Expect(w.machines()).To(BeEmpty())
}

// unfilled lets reads of a kind time out, as long as its cache is not filled.
func (w *world) unfilled(kind string) {
	w.r.Infrastructure.Cached = w.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == kind {
				return apierrors.NewTimeoutError("the cache is not filled", 1)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// TestCacheThatIsFilledLate: after a start of the manager, nothing is written while its cache is being filled. Only when that takes longer
// than a minute does a control plane say so, and what it says goes as soon as the cache is filled.
func TestCacheThatIsFilledLate(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	w.reconcile()
	before, filled := w.controlPlane(), w.r.Infrastructure.Cached
	w.now, w.r.leading = w.now.Add(time.Minute), manager.Leadership{}
	w.unfilled("Metal3Machine")
	for range 4 {
		g.Expect(w.reconcile().RequeueAfter).To(Equal(manager.FillingRetryInterval))
		w.now = w.now.Add(manager.FillingTime / 4)
	}
	g.Expect(w.controlPlane().ResourceVersion).To(Equal(before.ResourceVersion))

	g.Expect(w.try()).To(MatchError(ContainSubstring("the cache is not filled")))
	g.Expect(w.message(controlplanev1.AvailableCondition)).To(ContainSubstring("the cache is not filled"))
	g.Expect(w.available()).To(BeTrue())

	w.r.Infrastructure.Cached = filled
	w.reconcile()
	g.Expect(w.message(controlplanev1.AvailableCondition)).To(BeEmpty())
}

// TestInfrastructureNotAllowedLater: when the role is gone after a restart of the manager, it is not known whether Machines are up to date,
// and all else is kept in line.
func TestInfrastructureNotAllowedLater(t *testing.T) {
	g := NewWithT(t)
	allowed := true
	w := newOtherWorld(t, &allowed)
	upToDate := func() *metav1.Condition {
		m := w.machines()[0]
		return conditions.Get(&m, clusterv1.MachineUpToDateCondition)
	}
	w.run(nil, func() bool { return len(w.machines()) == 1 && upToDate() != nil })
	g.Expect(upToDate().Status).To(Equal(metav1.ConditionTrue))

	allowed = false
	before := w.r.Infrastructure
	w.r.Infrastructure = &infrastructure.Reader{Cached: before.Cached, Live: before.Live, Label: before.Label}
	cp := w.controlPlane()
	cp.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](77)
	w.must(w.client.Update(context.Background(), cp))
	g.Expect(w.reconcile().RequeueAfter).To(Equal(infrastructure.RetryNotAllowed))
	g.Expect(upToDate()).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", controlplanev1.MachineUpToDateUnknownReason),
		HaveField("Message", ContainSubstring("aggregate-to-openshift-assisted"))))
	g.Expect(w.machines()[0].Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(77)))
	g.Expect(w.reason(controlplanev1.MachinesUpToDateCondition)).To(Equal(controlplanev1.MachinesUpToDateUnknownReason))
	version := w.machines()[0].ResourceVersion
	w.reconcile()
	g.Expect(w.machines()[0].ResourceVersion).To(Equal(version))

	allowed = true
	w.reconcile()
	g.Expect(upToDate().Status).To(Equal(metav1.ConditionTrue))
}

// TestInfrastructureNotAllowedDeletion: what the manager may not read does not keep a control plane from being deleted.
func TestInfrastructureNotAllowedDeletion(t *testing.T) {
	g := NewWithT(t)
	w := newOtherWorld(t, new(false))
	for range 5 {
		w.reconcile()
	}
	g.Expect(w.install()).NotTo(BeNil())
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	w.run(nil, func() bool { return w.controlPlane().Name == "" })
}
