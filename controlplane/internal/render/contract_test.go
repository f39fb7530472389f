// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

func TestContractMachineObjects(t *testing.T) {
	t.Run("CP-11 CP-30 CP-31 the labels of a control plane are on Machine and config, with those of the template", testLabels)
	t.Run("CP-31 a name that is too long for a label is hashed", testLongName)
	t.Run("CP-32 CORE-9 a Machine is controlled by its control plane from its creation", testController)
	t.Run("CP-33 CP-34 a config has its Machine's name and a plain owner, which core replaces", testConfig)
	t.Run("CP-41 labels and annotations of the control plane stay with it", testOwnMetadata)
}

func TestContractPropagation(t *testing.T) {
	t.Run("CP-40 keys of the template follow it, those of others stay", testMetadataPatch)
	t.Run("CP-42 CP-43 CP-44 time-outs, taints, gates and the time of readiness follow the template", testSpecPatch)
	t.Run("CP-46 of a Machine that is being deleted only time-outs and taints change", testSpecPatchWhileDeleting)
}

func testLabels(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	cp.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{
		Labels: map[string]string{"pool": "masters"}, Annotations: map[string]string{"note": "yes"},
	}
	objects := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	want := map[string]string{
		"pool": "masters", clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "cp",
	}
	for _, object := range []metav1.Object{objects.Machine(clusterv1.ContractVersionedObjectReference{}), objects.Config()} {
		g.Expect(object.GetLabels()).To(Equal(want))
		g.Expect(object.GetAnnotations()).To(HaveKeyWithValue("note", "yes"))
	}
}

func testLongName(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	cp.Name = strings.Repeat("x", 80)
	value := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}.Labels()[clusterv1.MachineControlPlaneNameLabel]
	g.Expect(value).NotTo(BeEmpty())
	g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty())
	cp.Name = strings.Repeat("x", 79) + "y"
	g.Expect(render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}.Labels()).NotTo(
		HaveKeyWithValue(clusterv1.MachineControlPlaneNameLabel, value), "two names are two values")
}

func testController(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	machine := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}.Machine(clusterv1.ContractVersionedObjectReference{})
	g.Expect(machine.OwnerReferences).To(HaveLen(1))
	g.Expect(metav1.IsControlledBy(machine, cp)).To(BeTrue())
}

func testConfig(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	objects := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	config, machine := objects.Config(), objects.Machine(clusterv1.ContractVersionedObjectReference{})
	g.Expect(config.Name).To(Equal(machine.Name))
	g.Expect(machine.Spec.Bootstrap.ConfigRef.Name).To(Equal(config.Name))
	g.Expect(config.OwnerReferences).To(HaveLen(1))
	g.Expect(config.OwnerReferences[0].UID).To(Equal(cp.UID))
	g.Expect(metav1.GetControllerOf(config)).To(BeNil())
}

func testOwnMetadata(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	cp.Labels, cp.Annotations = map[string]string{"own": "x"}, map[string]string{"own": "x"}
	objects := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	for _, object := range []metav1.Object{objects.Machine(clusterv1.ContractVersionedObjectReference{}), objects.Config()} {
		g.Expect(object.GetLabels()).NotTo(HaveKey("own"))
		g.Expect(object.GetAnnotations()).NotTo(HaveKey("own"))
		g.Expect(objects.MetadataPatch(object)).To(BeNil())
	}
}

func testSpecPatchWhileDeleting(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	objects := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	machine := objects.Machine(clusterv1.ContractVersionedObjectReference{})
	machine.DeletionTimestamp = new(metav1.Now())
	machine.Spec.MinReadySeconds = nil
	cp.Spec.MachineTemplate.Spec = controlplanev1.MachineTemplateSpec{
		ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Racked"}},
		Deletion:       controlplanev1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(60))},
		Taints:         []clusterv1.MachineTaint{{Key: "a", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}},
	}
	g.Expect(objects.SpecPatch(machine)).To(HaveKeyWithValue("spec", And(HaveLen(2), HaveKey("deletion"), HaveKey("taints"))))
}

func TestContractKubeconfig(t *testing.T) {
	t.Run("CP-54 the server is the control-plane endpoint and its name is checked", testRewriteKubeconfig)
	t.Run("CP-54 a kubeconfig that needs a program or a file is refused", testRewriteKubeconfigRefused)
}
