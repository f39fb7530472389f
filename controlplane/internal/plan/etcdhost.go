// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"slices"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// EtcdHost is a control-plane Machine as the members of etcd are compared with it.
type EtcdHost struct {
	// Machine is the Machine's name.
	Machine string
	// Node is the name of its Node; empty as long as it is not known.
	Node string
	// Addresses are those of its Node and of the Machine.
	Addresses []string
	// Ready: its Node is ready, so its host runs.
	Ready bool
	// Gone: no Node has that name any more.
	Gone bool
}

// at reports whether a member has an address of the host.
func (h EtcdHost) at(m workload.Member) bool {
	return slices.ContainsFunc(m.PeerHosts, func(address string) bool {
		return slices.ContainsFunc(h.Addresses, func(own string) bool { return sameAddress(own, address) })
	})
}

// sameAddress compares IP addresses, of which IPv6 has several spellings.
func sameAddress(a, b string) bool {
	ipA, errA := netip.ParseAddr(a)
	ipB, errB := netip.ParseAddr(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return ipA == ipB
}

// accountsFor reports whether one of the Machines has both the name and an address of a member: a host that was given the name of another.
func accountsFor(machines []EtcdHost, m workload.Member) bool {
	return slices.ContainsFunc(machines, func(h EtcdHost) bool { return h.Node == m.Name && h.at(m) })
}

// claims reports whether a member has the name or an address of the host.
func (h EtcdHost) claims(m workload.Member) bool { return h.at(m) || m.Name != "" && h.Node == m.Name }

// claimant is the Machine, of others, that has a member's name or address; empty when none has.
func claimant(m workload.Member, others []EtcdHost) string {
	for _, other := range others {
		if other.claims(m) {
			return other.Machine
		}
	}
	return ""
}
