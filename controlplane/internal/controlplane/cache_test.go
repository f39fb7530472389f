// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestAgentsInCache: of an Agent the cache of this manager keeps everything but its disks.
func TestAgentsInCache(t *testing.T) {
	g := NewWithT(t)
	agent := &assisted.Agent{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "machine"},
		},
		Spec: assisted.AgentSpec{Role: assisted.RoleMaster, Approved: true},
		Status: assisted.AgentStatus{
			Inventory: assisted.Inventory{
				Hostname: "h", Interfaces: []assisted.Interface{{MACAddress: "aa:00", IPV4Addresses: []string{"192.0.2.21/24"}}},
				SystemVendor: assisted.SystemVendor{SerialNumber: "SN-1"},
			},
			DebugInfo:       assisted.DebugInfo{State: assisted.AgentStateKnown, StateInfo: "x"},
			ValidationsInfo: common.ValidationsStatus{"network": {{ID: "ntp-synced", Status: "error"}}},
		},
	}
	want := agent.DeepCopy()
	agent.Status.Inventory.Disks = []assisted.Disk{{ID: "disk-1"}}
	Reduce(agent)
	g.Expect(agent).To(Equal(want))
}

// TestWorkersInCache: of MachineDeployments and MachineSets the cache of this manager keeps what users ask for, and not what Cluster API
// says of it.
func TestWorkersInCache(t *testing.T) {
	g := NewWithT(t)
	deployment, set := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
	deployment.Spec.Replicas, set.Spec.Replicas = ptr.To[int32](2), ptr.To[int32](2)
	wanted, asked := deployment.DeepCopy(), set.DeepCopy()
	deployment.Status.Conditions = []metav1.Condition{{Type: "Available"}}
	set.Status.Conditions = []metav1.Condition{{Type: "MachinesReady"}}
	Reduce(deployment)
	Reduce(set)
	g.Expect(deployment).To(Equal(wanted))
	g.Expect(set).To(Equal(asked))
}

// TestInfrastructureInCache: of an infrastructure machine the cache of this manager keeps the metadata, and of a template everything.
func TestInfrastructureInCache(t *testing.T) {
	for kind, kept := range map[string][]string{
		"DevMachine": {"apiVersion", "kind", "metadata"}, "DevMachineTemplate": {"apiVersion", "kind", "metadata", "spec", "status"},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": map[string]any{"name": "m"},
			"spec": map[string]any{"a": "b"}, "status": map[string]any{"ready": true},
		}}
		Reduce(o)
		NewWithT(t).Expect(slices.Sorted(maps.Keys(o.Object))).To(Equal(kept))
		NewWithT(t).Expect(o.GetName()).To(Equal("m"))
	}
}
