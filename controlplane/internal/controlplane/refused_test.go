// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestRefusedMachine: nothing is created for a Machine that Cluster API does not take, for example for its taints.
func TestRefusedMachine(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.refuse = func(o client.Object) error {
		if _, machine := o.(*clusterv1.Machine); machine {
			return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), o.GetName(), nil)
		}
		return nil
	}
	for range 3 {
		_ = w.try()
	}
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("the API server refused it"))
	g.Expect(w.infraMachines()).To(BeEmpty())
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	g.Expect(w.client.List(context.Background(), configs)).To(Succeed())
	g.Expect(configs.Items).To(BeEmpty())

	w.refuse = nil
	template := infra("Metal3MachineTemplate")
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "t"}, template))
	template.SetName("t2")
	template.SetResourceVersion("")
	w.must(w.client.Create(context.Background(), template))
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.OpenshiftAssistedConfigSpec.Proxy.HTTPProxy = "http://right.example.com:3128"
		s.MachineTemplate.Spec.InfrastructureRef.Name = "t2"
	})
	for range 4 {
		w.reconcile()
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.reason(controlplanev1.MachinesUpToDateCondition)).
		To(Equal(controlplanev1.MachinesUpToDateReason), "no Machine is born outdated")
}

// TestRefusedAdoption: while the patches that adopt two Machines fail, the condition Installed keeps its message. Once a policy refuses one
// of the patches, Installed repeats what the policy says.
func TestRefusedAdoption(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool { return len(w.machines()) == 3 })
	w.reconcile()
	before := w.message(controlplanev1.InstalledCondition)
	w.orphan("cp-1")
	w.orphan("cp-2")
	answers := map[string]error{"cp-1": errors.New("no answer"), "cp-2": errors.New("no answer")}
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, machine := o.(*clusterv1.Machine); machine && answers[o.GetName()] != nil {
				return answers[o.GetName()]
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	g.Expect(w.try()).To(MatchError(ContainSubstring("no answer")))
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(Equal(before))

	resource := clusterv1.GroupVersion.WithResource("machines").GroupResource()
	answers["cp-2"] = apierrors.NewForbidden(resource, "cp-2", errors.New("no new owners"))
	g.Expect(w.try()).To(HaveOccurred(), "it is tried again")
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstallRefusedReason))
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(And(ContainSubstring("no new owners"), Not(ContainSubstring("no answer"))))
	clear(answers)
	w.reconcile()
	w.reconcile()
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(Equal(before))
}

// TestRefusedAdoptionOfAnImportedCluster: a control plane without status, as it comes out of a backup, says of the cluster that was
// installed neither that it is available nor only that its API is waited for.
func TestRefusedAdoptionOfAnImportedCluster(t *testing.T) {
	g := NewWithT(t)
	w := installedWorld(t).moved()
	w.orphan("cp-1")
	answer := errors.New("no answer")
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, machine := o.(*clusterv1.Machine); machine && answer != nil {
				return answer
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	expect := func(reason string) {
		t.Helper()
		for range 4 {
			_ = w.try()
			g.Expect(conditions.IsTrue(w.controlPlane(), controlplanev1.AvailableCondition)).To(BeFalse())
		}
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(reason))
	}
	expect(controlplanev1.ImportingReason)
	resource := clusterv1.GroupVersion.WithResource("machines").GroupResource()
	answer = apierrors.NewForbidden(resource, "cp-1", errors.New("no new owners"))
	expect(controlplanev1.InstallRefusedReason)
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("no new owners"))
	answer = nil
	w.finishImport()
}
