// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
)

// TestReduceAgent: ReduceAgent drops the checks that pass and the two annotations that repeat the status, and keeps everything else of an
// Agent: the checks that fail with their messages, too.
func TestReduceAgent(t *testing.T) {
	g := NewWithT(t)
	agent := &Agent{Status: AgentStatus{
		Inventory: Inventory{Interfaces: []Interface{{MACAddress: "aa:00"}}, Disks: []Disk{{ID: "disk-1"}}},
		ValidationsInfo: common.ValidationsStatus{
			"hardware": {{ID: "has-cpu", Status: "success", Message: "enough"}, {ID: "has-memory", Status: "failure", Message: "too little"}},
			"network":  {{ID: "connected", Status: "success"}, {ID: "ntp-synced", Status: "error"}, {ID: "api-vip", Status: "pending"}},
			"operator": {{ID: "lvm", Status: "disabled"}},
		},
	}}
	agent.Annotations = map[string]string{InventoryAnnotation: "{}", ChecksAnnotation: "{}", "kept": "x"}
	failing, inventory := FailingChecks(agent.Status.ValidationsInfo), agent.Status.Inventory
	ReduceAgent(agent)
	g.Expect(FailingChecks(agent.Status.ValidationsInfo)).To(Equal(failing))
	g.Expect(agent.Status.ValidationsInfo).To(Equal(common.ValidationsStatus{
		"hardware": {{ID: "has-memory", Status: "failure", Message: "too little"}}, "network": {{ID: "ntp-synced", Status: "error"}},
	}))
	g.Expect(agent.Status.Inventory).To(Equal(inventory))
	g.Expect(agent.Annotations).To(Equal(map[string]string{"kept": "x"}), "the status tells the rest")
}
