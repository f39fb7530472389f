// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func controlPlane(replicas int32) *controlplanev1.OpenshiftAssistedControlPlane {
	return &controlplanev1.OpenshiftAssistedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "uid"},
		Spec: controlplanev1.OpenshiftAssistedControlPlaneSpec{
			Replicas: &replicas, Version: "v1.33.4", DistributionVersion: "4.20.4",
			MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Metal3MachineTemplate", Name: "t",
				},
			}},
			Install: controlplanev1.InstallSpec{BaseDomain: "example.com"},
		},
	}
}

func counts(masters, workers int) hiveext.ProvisionRequirements {
	return hiveext.ProvisionRequirements{ControlPlaneAgents: masters, WorkerAgents: workers}
}

func TestAgentClusterInstall(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.128.0.0/14", "fd01::/48"}
	cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"172.30.0.0/16", "fd02::/112"}

	ha := controlPlane(3)
	ha.Spec.Install.APIVIPs, ha.Spec.Install.IngressVIPs = []string{"192.0.2.5"}, []string{"192.0.2.6"}
	ha.Spec.Install.Networking.MachineNetwork = []string{"192.0.2.0/24"}
	install, err := render.Install{ControlPlane: ha, Cluster: cluster, Workers: 2}.AgentClusterInstall()
	if err != nil {
		t.Fatal(err)
	}
	if install.Annotations[assisted.InstallConfigOverridesAnnotation] == "" ||
		install.Annotations[controlplanev1.InstallAttemptAnnotation] != "1" {
		t.Errorf("annotations are %v", install.Annotations)
	}
	if !install.Spec.HoldInstallation || install.Spec.ProvisionRequirements != counts(3, 2) || install.Spec.PlatformType != "BareMetal" {
		t.Errorf("spec is %+v", install.Spec)
	}
	networking := hiveext.Networking{
		NetworkType: "OVNKubernetes", ServiceNetwork: []string{"172.30.0.0/16", "fd02::/112"},
		MachineNetwork: []hiveext.MachineNetworkEntry{{CIDR: "192.0.2.0/24"}},
		ClusterNetwork: []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}, {CIDR: "fd01::/48", HostPrefix: 64}},
	}
	if diff := cmp.Diff(networking, install.Spec.Networking); diff != "" {
		t.Errorf("networking (-want +got):\n%s", diff)
	}

	single, err := render.Install{ControlPlane: controlPlane(1), Cluster: cluster, Workers: 2}.AgentClusterInstall()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := single.Annotations[assisted.InstallConfigOverridesAnnotation]; ok {
		t.Error("a single-node cluster has overrides")
	}
	if umn := single.Spec.Networking.UserManagedNetworking; umn == nil || !*umn || single.Spec.PlatformType != "None" ||
		single.Spec.ProvisionRequirements != counts(1, 0) {
		t.Errorf("single-node spec is %+v", single.Spec)
	}
}

// TestInstallLabels: the objects of an installation are watched by whoever watches their control plane (CONTRACT CP-66).
func TestInstallLabels(t *testing.T) {
	cp := controlPlane(1)
	cp.Labels = map[string]string{"other": "x", clusterv1.WatchLabel: "a"}
	want := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.WatchLabel: "a"}
	maps.Copy(want, view.OwnerLabels(cp))
	deployment := render.Install{ControlPlane: cp, Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}.ClusterDeployment()
	if diff := cmp.Diff(want, deployment.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func testMetadataPatch(t *testing.T) {
	before := controlPlane(3)
	before.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{
		Labels: map[string]string{"keep": "1", "drop": "1"}, Annotations: map[string]string{"a": "1"},
	}
	objects := render.MachineObjects{ControlPlane: before, ClusterName: "c", Name: "cp-0"}
	machine := objects.Machine(clusterv1.ContractVersionedObjectReference{})
	machine.Labels["theirs"], machine.Annotations["theirs"] = "x", "x"
	if patch := objects.MetadataPatch(machine); patch != nil {
		t.Errorf("a new Machine is patched: %v", patch)
	}

	after := before.DeepCopy()
	after.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{Labels: map[string]string{"keep": "2"}}
	objects.ControlPlane = after
	want := map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{"keep": "2", "drop": nil},
		"annotations": map[string]any{"a": nil, controlplanev1.TemplateKeysAnnotation: `{"labels":["keep"]}`},
	}}
	if diff := cmp.Diff(want, objects.MetadataPatch(machine)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}

	after.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{}
	want = map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{"keep": nil, "drop": nil},
		"annotations": map[string]any{"a": nil, controlplanev1.TemplateKeysAnnotation: nil},
	}}
	if diff := cmp.Diff(want, objects.MetadataPatch(machine)); diff != "" {
		t.Errorf("patch of an emptied template (-want +got):\n%s", diff)
	}
}

func testSpecPatch(t *testing.T) {
	cp := controlPlane(3)
	objects := render.MachineObjects{ControlPlane: cp, ClusterName: "c", Name: "cp-0"}
	machine := objects.Machine(clusterv1.ContractVersionedObjectReference{})
	if patch := objects.SpecPatch(machine); patch != nil {
		t.Errorf("a new Machine is patched: %v", patch)
	}
	cp.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
	want := map[string]any{"spec": map[string]any{"deletion": map[string]any{
		"nodeDrainTimeoutSeconds": new(int32(60)), "nodeVolumeDetachTimeoutSeconds": (*int32)(nil), "nodeDeletionTimeoutSeconds": new(int32(10)),
	}}}
	if diff := cmp.Diff(want, objects.SpecPatch(machine)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	machine.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))

	gates := []clusterv1.MachineReadinessGate{{ConditionType: "Racked"}}
	taints := []clusterv1.MachineTaint{{Key: "example.com/a", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}}
	cp.Spec.MachineTemplate.Spec.ReadinessGates, cp.Spec.MachineTemplate.Spec.Taints = gates, taints
	if diff := cmp.Diff(
		map[string]any{"spec": map[string]any{"readinessGates": gates, "taints": taints}}, objects.SpecPatch(machine),
	); diff != "" {
		t.Errorf("patch of gates and taints (-want +got):\n%s", diff)
	}
	machine.Spec.ReadinessGates, machine.Spec.Taints = gates, taints
	machine.Spec.MinReadySeconds = new(int32(5))
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"minReadySeconds": int32(0)}}, objects.SpecPatch(machine)); diff != "" {
		t.Errorf("patch of the time of readiness (-want +got):\n%s", diff)
	}
	machine.Spec.MinReadySeconds = new(int32(0))

	cp.Spec.Version = "v1.33.4+abc"
	version := map[string]any{"spec": map[string]any{"version": "v1.33.4+abc"}}
	if diff := cmp.Diff(version, objects.SpecPatch(machine)); diff != "" {
		t.Errorf("patch of the version before there is a Node (-want +got):\n%s", diff)
	}
	machine.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1.33.4"}
	if patch := objects.SpecPatch(machine); patch != nil {
		t.Errorf("a version that the Node does not run was written: %v", patch)
	}
	machine.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1.33.4+abc"}
	if diff := cmp.Diff(version, objects.SpecPatch(machine)); diff != "" {
		t.Errorf("patch of the version that the Node runs (-want +got):\n%s", diff)
	}
}
