// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestAgentsInCache: of an Agent the cache keeps everything but its disks and what internal/assisted drops for both managers.
func TestAgentsInCache(t *testing.T) {
	g := NewWithT(t)
	agent := &assisted.Agent{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "machine"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
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
	want.ManagedFields = nil
	agent.Annotations[assisted.InventoryAnnotation] = "{}"
	agent.Status.Inventory.Disks = []assisted.Disk{{ID: "disk-1"}}
	agent.Status.ValidationsInfo["hardware"] = common.ValidationResults{{ID: "has-cpu", Status: "success"}}
	var transforms []cache.ByObject
	for o, rule := range CacheRules() {
		if reflect.TypeOf(o) == reflect.TypeOf(agent) {
			transforms = append(transforms, rule)
		}
	}
	g.Expect(transforms).To(HaveLen(1))
	kept, err := transforms[0].Transform(agent)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(Equal(want))
}
