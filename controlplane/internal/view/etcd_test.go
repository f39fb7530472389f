// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	. "github.com/onsi/gomega"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// TestNodeOf: a Node goes with its Machine, also one that core has not given to the Machine, and never with another.
func TestNodeOf(t *testing.T) {
	at := func(providerID string, addresses ...string) workload.ControlPlaneNode {
		return workload.ControlPlaneNode{Name: "n", ProviderID: providerID, Addresses: addresses}
	}
	for name, tc := range map[string]struct {
		node                         workload.ControlPlaneNode
		providerID, nodeRef, address string
		is                           bool
	}{
		"by its provider ID":                       {at("p"), "p", "", "", true},
		"with the provider ID of another":          {at("p"), "q", "n", "", false},
		"by its name":                              {at(""), "p", "n", "", true},
		"of another name, at the same address":     {at("", "10.0.0.1"), "p", "m", "10.0.0.1", false},
		"that nobody has claimed, at its address":  {at("", "10.0.0.1"), "p", "", "10.0.0.1", true},
		"that is another's, at an address of both": {at("p", "10.0.0.1"), "q", "", "10.0.0.1", false},
		"that nobody has claimed, elsewhere":       {at("", "10.0.0.2"), "p", "", "10.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{}
			m.Spec.ProviderID, m.Status.NodeRef.Name = tc.providerID, tc.nodeRef
			m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: tc.address}}
			node := Workload{Nodes: []workload.ControlPlaneNode{tc.node}}.NodeOf(m)
			NewWithT(t).Expect(node != nil).To(Equal(tc.is))
		})
	}
}
