// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
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
			name:     "what is wanted, until the Node is known",
			machines: []*clusterv1.Machine{machineOf("v1.33.4", ""), machineOf("v1.33.4", "")},
			want:     []clusterv1.StatusVersion{{Version: "v1.33.4", Replicas: 2}},
		},
		{
			name: "older first, plain before build metadata",
			machines: []*clusterv1.Machine{
				machineOf("v1.33.4", "v1.33.4+f00"), machineOf("v1.33.4", "v1.33.4"), machineOf("v1.33.4", "v1.33.4+abc"), machineOf("v1.33.4", "v1.9.0"),
			},
			want: []clusterv1.StatusVersion{
				{Version: "v1.9.0", Replicas: 1}, {Version: "v1.33.4", Replicas: 1}, {Version: "v1.33.4+abc", Replicas: 1}, {Version: "v1.33.4+f00", Replicas: 1},
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
		{ObjectMeta: metav1.ObjectMeta{OwnerReferences: controlled("MachineDeployment")}, Spec: clusterv1.MachineSetSpec{Replicas: new(int32(2))}},
	}
	machines := []*clusterv1.Machine{
		{},
		{ObjectMeta: metav1.ObjectMeta{OwnerReferences: controlled("MachineSet")}},
		{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}},
		{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: gone}},
	}
	if got := plan.WantedWorkers(deployments, sets, machines); got != 2+1+3+1 {
		t.Errorf("WantedWorkers = %d, want 7", got)
	}
}
