// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
