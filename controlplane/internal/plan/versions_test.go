// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func machineOf(spec, kubelet string) *clusterv1.Machine {
	m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: spec}}
	if kubelet != "" {
		m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: kubelet}
	}
	return m
}

func testStatusVersions(t *testing.T) {
	tests := []struct {
		name     string
		machines []*clusterv1.Machine
		want     []clusterv1.StatusVersion
	}{
		{name: "no Machines"},
		{
			name: "what is wanted, until the Node is known", machines: []*clusterv1.Machine{machineOf("v1.33.4", ""), machineOf("v1.33.4", "")},
			want: []clusterv1.StatusVersion{{Version: "v1.33.4", Replicas: 2}},
		},
		{
			name: "older first, plain before build metadata",
			machines: []*clusterv1.Machine{
				machineOf("v1.33.4", "v1.33.4+f00"),
				machineOf("v1.33.4", "v1.33.4"),
				machineOf("v1.33.4", "v1.33.4+abc"),
				machineOf("v1.33.4", "v1.9.0"),
			},
			want: []clusterv1.StatusVersion{
				{
					Version: "v1.9.0", Replicas: 1,
				},
				{Version: "v1.33.4", Replicas: 1},
				{Version: "v1.33.4+abc", Replicas: 1},
				{Version: "v1.33.4+f00", Replicas: 1},
			},
		},
		{name: "what is no version is left out", machines: []*clusterv1.Machine{machineOf("", ""), machineOf("newest", "")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, plan.StatusVersions(tt.machines)); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContractVersionCheck(t *testing.T) {
	named := func(name, spec, kubelet string) []*clusterv1.Machine {
		m := machineOf(spec, kubelet)
		m.Name = name
		return []*clusterv1.Machine{m}
	}
	made := func(seconds int64, machines []*clusterv1.Machine) []*clusterv1.Machine {
		for _, m := range machines {
			m.CreationTimestamp = metav1.Unix(seconds, 0)
		}
		return machines
	}
	const plain, hashed = "v1.33.4", "v1.33.4+abc"
	resolved := controlplanev1.ReleaseStatus{Image: "quay.io/ocp:a", Version: "4.20.4", KubernetesVersion: "v1.33.5"}
	tests := []struct {
		name  string
		check plan.VersionCheck
		known bool
		want  string
	}{
		{
			name:  "CP-70 nothing is known before a Node reports",
			check: plan.VersionCheck{Version: plain, Release: "4.20.0", ControlPlane: named("cp-0", plain, ""), Workers: named("w", plain, "")},
		},
		{
			name:  "CP-70 the minor version of the release is known before there is a Machine",
			check: plan.VersionCheck{Version: "v1.32.1", Release: "4.20.0"},
			want:  "Release 4.20.0 has Kubernetes 1.33, not v1.32.1: set spec.version to the version of its kubelets, which begins with v1.33.",
		},
		{
			name:  "CP-73 of a topology, it is the Cluster that has to be changed",
			check: plan.VersionCheck{Version: "v1.34.0", Release: "4.20.4-rc.1", Topology: "demo"},
			want: "Release 4.20.4-rc.1 has Kubernetes 1.33, not v1.34.0: set spec.topology.version of Cluster demo to the version " +
				"of its kubelets, which begins with v1.33.",
		},
		{
			name:  "CP-70 a release image tells the exact version before there is a Node",
			check: plan.VersionCheck{Version: plain, Release: "4.20.4", Resolved: resolved},
			want:  "Release 4.20.4 has Kubernetes v1.33.5, not v1.33.4: set spec.version, and the version of MachineDeployments, to v1.33.5",
		},
		{
			name:  "CP-73 of a topology as well",
			check: plan.VersionCheck{Version: "v1.32.5", Release: "4.20.4", Resolved: resolved, Topology: "demo"},
			want:  "Release 4.20.4 has Kubernetes v1.33.5, not v1.32.5: set spec.topology.version of Cluster demo to v1.33.5",
		},
		{
			name:  "CP-72 it does not tell what kubelets add to the version",
			check: plan.VersionCheck{Version: "v1.33.5+abc", Release: "4.20.4", Resolved: resolved},
		},
		{
			name:  "CP-70 a Node knows better",
			check: plan.VersionCheck{Version: plain, Release: "4.20.4", Resolved: resolved, ControlPlane: named("cp-0", plain, plain)}, known: true,
		},
		{
			name: "an image of another release", check: plan.VersionCheck{Version: "v1.33.5", Release: "4.20.5", Resolved: resolved},
			want: "Image quay.io/ocp:a is release 4.20.4, but spec.distributionVersion is 4.20.5: they must be the same release",
		},
		{
			name:  "CP-70 the version of a release of OpenShift 5 does not tell that of its Kubernetes",
			check: plan.VersionCheck{Version: plain, Release: "5.0.1"},
		},
		{
			name: "CP-70 its image does",
			check: plan.VersionCheck{Version: plain, Release: "5.0.1", Resolved: controlplanev1.ReleaseStatus{
				Image: "quay.io/ocp:b", Version: "5.0.1", KubernetesVersion: "v1.36.3",
			}},
			want: "Release 5.0.1 has Kubernetes v1.36.3, not v1.33.4: set spec.version, and the version of MachineDeployments, to v1.36.3",
		},
		{
			name:  "CP-70 what the first Node runs is the version",
			check: plan.VersionCheck{Version: hashed, Release: "4.20.0", ControlPlane: named("cp-0", hashed, hashed)}, known: true,
		},
		{
			name:  "CP-72 a kubelet with build metadata runs another version than a plain one",
			check: plan.VersionCheck{Version: plain, Release: "4.20.0", ControlPlane: named("cp-0", plain, hashed)}, known: true,
			want: "The Node of Machine cp-0 runs v1.33.4+abc: set spec.version, and the version of MachineDeployments, to v1.33.4+abc",
		},
		{
			name:  "CP-72 so does a plain one",
			check: plan.VersionCheck{Version: hashed, Release: "4.20.0", ControlPlane: named("cp-0", hashed, plain)}, known: true,
			want: "The Node of Machine cp-0 runs v1.33.4: set spec.version, and the version of MachineDeployments, to v1.33.4",
		},
		{
			name: "CP-72 CP-73 a topology can be corrected before workers join",
			check: plan.VersionCheck{
				Version: plain, Release: "4.20.0", Topology: "demo", ControlPlane: named("cp-0", plain, hashed), Workers: named("w", plain, ""),
			},
			known: true,
			want:  "The Node of Machine cp-0 runs v1.33.4+abc: set spec.topology.version of Cluster demo to v1.33.4+abc",
		},
		{
			name: "CP-72 CP-73 and after they have joined, without them",
			check: plan.VersionCheck{
				Version: plain, Release: "4.20.0", Topology: "demo", ControlPlane: named("cp-0", plain, hashed), Workers: named("w", plain, hashed),
			},
			known: true,
			want: "The Node of Machine cp-0 runs v1.33.4+abc: scale the workers to 0, set spec.topology.version of Cluster demo to v1.33.4+abc, " +
				"and scale them up again",
		},
		{
			name:  "CP-72 a worker's version is compared with its own Machine",
			check: plan.VersionCheck{Version: hashed, ControlPlane: named("cp-0", hashed, hashed), Workers: named("w", plain, hashed)}, known: true,
			want: `The Node of worker Machine w runs v1.33.4+abc and its version is "v1.33.4", so that Cluster API takes it for upgrading: ` +
				"set the version of its MachineDeployment to v1.33.4+abc",
		},
		{
			name: "CP-72 of several such workers the oldest is named, and of those of one second the first by name",
			check: plan.VersionCheck{
				Version: hashed, ControlPlane: named("cp-0", hashed, hashed),
				Workers: slices.Concat(
					made(2, named("a", plain, hashed)), made(1, named("c", plain, hashed)), made(1, named("b", plain, hashed)),
					made(0, named("matches", hashed, hashed)),
				),
			},
			known: true,
			want: `The Node of worker Machine b runs v1.33.4+abc and its version is "v1.33.4", so that Cluster API takes it for upgrading: ` +
				"set the version of its MachineDeployment to v1.33.4+abc",
		},
		{
			name:  "CP-72 a worker without version never is up to date",
			check: plan.VersionCheck{Version: plain, ControlPlane: named("cp-0", plain, plain), Workers: named("w", "", plain)}, known: true,
			want: `The Node of worker Machine w runs v1.33.4 and its version is "", so that Cluster API takes it for upgrading: ` +
				"set the version of its MachineDeployment to v1.33.4",
		},
		{
			name: "CP-72 CP-73 a topology has one version, which a worker left behind does not run",
			check: plan.VersionCheck{
				Version: plain, Topology: "demo", ControlPlane: named("cp-0", plain, plain), Workers: named("w", plain, "v1.32.9"),
			},
			known: true,
			want: `The Node of worker Machine w runs v1.32.9 and its version is "v1.33.4", so that ` +
				`Cluster API takes it for upgrading: update its Node to v1.33.4`,
		},
		{
			name: "CP-72 CP-73 a worker whose Node is there before its version waits for Cluster API",
			check: plan.VersionCheck{
				Version: plain, Topology: "demo", ControlPlane: named("cp-0", plain, plain), Workers: named("w", "v1.32.9", plain),
			},
			known: true,
			want: `The Node of worker Machine w runs v1.33.4 and its version is "v1.32.9", so that Cluster API takes it for upgrading: ` +
				`nothing is to be set; condition TopologyReconciled of Cluster demo says when its MachineDeployment gets that version`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problem, known := tt.check.Problem()
			if problem != tt.want || known != tt.known {
				t.Errorf("got %q, known: %t\nwant %q, known: %t", problem, known, tt.want, tt.known)
			}
		})
	}
}

func TestWantedWorkers(t *testing.T) {
	controlled := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: new(true)}}
	}
	gone := &metav1.Time{Time: now}
	deployments := []clusterv1.MachineDeployment{
		{Spec: clusterv1.MachineDeploymentSpec{Replicas: new(int32(2))}},
		{}, // Defaults to one.
		{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: gone}, Spec: clusterv1.MachineDeploymentSpec{Replicas: new(int32(9))}},
	}
	sets := []clusterv1.MachineSet{
		{Spec: clusterv1.MachineSetSpec{Replicas: new(int32(3))}},
		{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: controlled("MachineDeployment")},
			Spec:       clusterv1.MachineSetSpec{Replicas: new(int32(2))},
		},
	}
	machines := []*clusterv1.Machine{
		{}, {ObjectMeta: metav1.ObjectMeta{OwnerReferences: controlled("MachineSet")}},
		{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}},
		{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: gone}},
	}
	if got := view.WantedWorkers(deployments, sets, machines); got != 2+1+3+1 {
		t.Errorf("WantedWorkers = %d, want 7", got)
	}
}
