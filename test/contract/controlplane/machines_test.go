// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/internal/metal3"
)

func (s *story) finalizerFirst(t *testing.T) {
	g := NewWithT(t)
	writes := s.managerWrites(g)
	g.Expect(by("", "patch", "openshiftassistedcontrolplanes")(writes[0])).To(BeTrue(), "%s %s", writes[0].Verb, writes[0].RequestURI)
	_, versions := s.history()
	for _, version := range versions {
		if len(version.Finalizers) > 0 {
			g.Expect(version.Status.Conditions).To(BeEmpty(), "nothing was reported before")
			return
		}
	}
}

func (s *story) createdOnce(t *testing.T) {
	g := NewWithT(t)
	writes := s.writes(g, func(e *auditv1.Event) bool {
		return by(s.world.ControlPlane.User, "create", "machines")(e) || by(s.world.Bootstrap.User, "create", "secrets")(e)
	})
	var machines []string
	for _, e := range writes {
		if e.ObjectRef.Resource == "machines" {
			machines = append(machines, e.ObjectRef.Name)
		}
	}
	g.Expect(machines).To(HaveLen(replicas))
	g.Expect(slices.Compact(slices.Sorted(slices.Values(machines)))).To(HaveLen(replicas))
	g.Expect(names(writes)[:replicas]).To(Equal(machines), "Machines come before the first host's data")
}

func (s *story) labels(t *testing.T) {
	g := NewWithT(t)
	machines := s.machines(g)
	g.Expect(machines).To(HaveLen(replicas))
	for i := range machines {
		m := &machines[i]
		for _, o := range append(s.companions(g, m), m) {
			g.Expect(o.GetName()).To(Equal(m.Name))
			g.Expect(o.GetLabels()).To(And(
				HaveKeyWithValue(clusterv1.ClusterNameLabel, clusterName),
				HaveKeyWithValue(clusterv1.MachineControlPlaneLabel, ""),
				HaveKeyWithValue(clusterv1.MachineControlPlaneNameLabel, s.install().Name)), "%T %s", o, o.GetName())
		}
	}
}

func (s *story) controllers(t *testing.T) {
	g := NewWithT(t)
	machines, _ := s.history()
	g.Expect(machines).NotTo(BeEmpty())
	controlPlane := s.controlPlane(g)
	for _, m := range machines {
		g.Expect(m.OwnerReferences).To(HaveLen(1), "Machine %s in version %s", m.Name, m.ResourceVersion)
		g.Expect(metav1.IsControlledBy(m, controlPlane)).To(BeTrue(), "Machine %s in version %s", m.Name, m.ResourceVersion)
	}
}

func (s *story) owners(t *testing.T) {
	g := NewWithT(t)
	machines := s.machines(g)
	for i := range machines {
		for _, o := range s.companions(g, &machines[i]) {
			g.Expect(o.GetOwnerReferences()).To(HaveLen(1))
			g.Expect(metav1.IsControlledBy(o, &machines[i])).To(BeTrue())
		}
	}
}

func (s *story) origin(t *testing.T) {
	g := NewWithT(t)
	machines := s.machines(g)
	template := s.controlPlane(g).Spec.MachineTemplate.Spec.InfrastructureRef
	for i := range machines {
		g.Expect(s.companions(g, &machines[i])[0].GetAnnotations()).To(And(
			HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, template.Name),
			HaveKeyWithValue(clusterv1.TemplateClonedFromGroupKindAnnotation, template.Kind+"."+template.APIGroup)))
	}
}

func (s *story) templateOwner(t *testing.T) {
	g := NewWithT(t)
	template := newMetal3("Metal3MachineTemplate")
	s.get(g, s.controlPlane(g).Spec.MachineTemplate.Spec.InfrastructureRef.Name, template)
	cluster := s.cluster(g)
	g.Expect(template.GetOwnerReferences()).To(ContainElement(metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}))
}

// stepsReport checks the first version of a Machine with conditions: all steps have said something, though none had anything to do.
func (s *story) stepsReport(t *testing.T) {
	g := NewWithT(t)
	machines, _ := s.history()
	first := machines[slices.IndexFunc(machines, func(m *clusterv1.Machine) bool {
		return conditions.Has(m, clusterv1.MachineBootstrapConfigReadyCondition)
	})]
	for _, condition := range []string{
		clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineNodeReadyCondition,
		clusterv1.ReadyCondition,
	} {
		g.Expect(conditions.Has(first, condition)).To(BeTrue(), condition)
		g.Expect(conditions.IsTrue(first, condition)).To(BeFalse(), condition)
	}
}

func (s *story) nodes(t *testing.T) {
	g := NewWithT(t)
	machines := s.machines(g)
	for i := range machines {
		m := &machines[i]
		infraMachine := s.companions(g, m)[0]
		g.Expect(m.Spec.ProviderID).To(Equal(fmt.Sprintf("metal3://%s/%s/%s", namespace, hostOf(g, infraMachine), infraMachine.GetName())))
		g.Expect(m.Status.Addresses).NotTo(BeEmpty())
		node := &corev1.Node{}
		g.Expect(s.workload(g).Get(t.Context(), named(m.Status.NodeRef.Name), node)).To(Succeed())
		g.Expect(node.Spec.ProviderID).To(Equal(m.Spec.ProviderID))
		g.Expect(m.Status.NodeInfo.KubeletVersion).To(Equal(node.Status.NodeInfo.KubeletVersion))
	}
}

// hostOf is the name of the BareMetalHost that an infrastructure machine has.
func hostOf(g Gomega, infraMachine client.Object) string {
	key, ok := metal3.HostKey(infraMachine.(*unstructured.Unstructured))
	g.Expect(ok).To(BeTrue())
	return key.Name
}

func (s *story) machinesReady(t *testing.T) {
	g := NewWithT(t)
	for _, m := range s.machines(g) {
		g.Expect(m.Spec.MinReadySeconds).To(HaveValue(BeZero()))
		for _, condition := range []string{clusterv1.MachineUpToDateCondition, clusterv1.MachineReadyCondition,
			clusterv1.MachineAvailableCondition} {
			g.Expect(conditions.IsTrue(&m, condition)).To(BeTrue(), "%s of Machine %s: %s", condition, m.Name, conditions.GetMessage(&m, condition))
		}
	}
}
