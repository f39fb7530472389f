// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	DropDisks(agent)
	g.Expect(agent).To(Equal(want))
}
