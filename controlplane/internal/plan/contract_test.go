// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capiversion "sigs.k8s.io/cluster-api/util/version"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func TestContractMachineObjects(t *testing.T) {
	t.Run("CP-11 CP-30 CP-31 the labels of a control plane are on Machine and config, with those of the template", testLabels)
	t.Run("CP-31 a name that is too long for a label is hashed", testLongName)
	t.Run("CP-32 CORE-9 a Machine is controlled by its control plane from its creation", testController)
	t.Run("CP-33 CP-34 a config has its Machine's name and a plain owner, which core replaces", testConfig)
	t.Run("CP-36 KCP-26 the same names are asked for until the cache shows them", testFreeMachineNames)
	t.Run("CP-41 labels and annotations of the control plane stay with it", testOwnMetadata)
}

func TestContractPropagation(t *testing.T) {
	t.Run("CP-40 keys of the template follow it, those of others stay", testMetadataPatch)
	t.Run("CP-42 CP-43 CP-44 time-outs, taints, gates and the time of readiness follow the template", testSpecPatch)
	t.Run("CP-46 of a Machine that is being deleted only time-outs and taints change", testSpecPatchWhileDeleting)
	t.Run("CP-45 a Machine says how it differs from what is asked for", testDifferences)
}

func TestContractVersions(t *testing.T) {
	t.Run("CP-10 versions are counted, what is no version is left out", testStatusVersions)
	t.Run("CP-10 core can read any list of versions", testVersionsAreReadable)
}

func TestContractKubeconfig(t *testing.T) {
	t.Run("CP-54 the server is the control-plane endpoint and its name is checked", testRewriteKubeconfig)
	t.Run("CP-54 a kubeconfig that needs a program or a file is refused", testRewriteKubeconfigRefused)
	t.Run("CP-6 an endpoint where the cluster will not answer is told from a good one", testServesEndpoint)
}

func TestContractDeletion(t *testing.T) {
	t.Run("CP-62 KCP-25 workers, Machines, then what the installation needed", testDeletion)
}

func testLabels(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	cp.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{
		Labels: map[string]string{"pool": "masters"}, Annotations: map[string]string{"note": "yes"},
	}
	objects := plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
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
	value := plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}.Labels()[clusterv1.MachineControlPlaneNameLabel]
	g.Expect(value).NotTo(BeEmpty())
	g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty())
	cp.Name = strings.Repeat("x", 79) + "y"
	g.Expect(plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}.Labels()).NotTo(
		HaveKeyWithValue(clusterv1.MachineControlPlaneNameLabel, value), "two names are two values")
}

func testController(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	machine := plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}.Machine(clusterv1.ContractVersionedObjectReference{})
	g.Expect(machine.OwnerReferences).To(HaveLen(1))
	g.Expect(metav1.IsControlledBy(machine, cp)).To(BeTrue())
}

func testConfig(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	objects := plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
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
	objects := plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	for _, object := range []metav1.Object{objects.Machine(clusterv1.ContractVersionedObjectReference{}), objects.Config()} {
		g.Expect(object.GetLabels()).NotTo(HaveKey("own"))
		g.Expect(object.GetAnnotations()).NotTo(HaveKey("own"))
		g.Expect(objects.MetadataPatch(object)).To(BeNil())
	}
}

func testSpecPatchWhileDeleting(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	objects := plan.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	machine := objects.Machine(clusterv1.ContractVersionedObjectReference{})
	machine.DeletionTimestamp = &metav1.Time{Time: now}
	machine.Spec.MinReadySeconds = nil
	cp.Spec.MachineTemplate.Spec = controlplanev1.MachineTemplateSpec{
		ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Racked"}},
		Deletion:       controlplanev1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(60))},
		Taints:         []clusterv1.MachineTaint{{Key: "a", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}},
	}
	g.Expect(objects.SpecPatch(machine)).To(HaveKeyWithValue("spec", And(HaveLen(2), HaveKey("deletion"), HaveKey("taints"))))
}

// testVersionsAreReadable checks lists of random versions by the rules with which core reads them: every entry is a semantic version, and
// none is older than the one before it, with build metadata compared.
func testVersionsAreReadable(t *testing.T) {
	g := NewWithT(t)
	versions := []string{
		"v1.32.9", "v1.33.4", "v1.33.10", "v1.33.4-rc.1", "v1.33.4+abc", "v1.33.4+f00", "v1.33.4+2", "v1.33.4+10", "v1.33.4+1.2", "1.33.4", "",
		"newest",
	}
	random := rand.New(rand.NewSource(1))
	for range 500 {
		var machines []*clusterv1.Machine
		for range random.Intn(8) {
			machines = append(machines, machineOf(versions[random.Intn(len(versions))], versions[random.Intn(len(versions))]))
		}
		list := plan.StatusVersions(machines)
		for i, entry := range list {
			version, err := semver.ParseTolerant(entry.Version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entry.Replicas).To(BeNumerically(">", 0))
			if i > 0 {
				before, err := semver.ParseTolerant(list[i-1].Version)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(capiversion.Compare(version, before, capiversion.WithBuildTags())).To(BeNumerically(">=", 0), "%v", list)
			}
		}
	}
}

func testServesEndpoint(t *testing.T) {
	tests := []struct {
		name string
		vips []string
		host string
		want bool
	}{
		{"the first address", []string{"192.0.2.5", "2001:db8::5"}, "192.0.2.5", true},
		{"the second one, written otherwise", []string{"192.0.2.5", "2001:db8::5"}, "2001:db8:0::5", true},
		{"another address", []string{"192.0.2.5"}, "192.0.2.6", false},
		{"a name, which only DNS knows", []string{"192.0.2.5"}, "api.example.com", true},
		{"a cluster that brings no address", nil, "192.0.2.6", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(plan.ServesEndpoint(controlplanev1.InstallSpec{APIVIPs: tt.vips}, tt.host)).To(Equal(tt.want))
		})
	}
}
