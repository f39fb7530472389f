// SPDX-License-Identifier: Apache-2.0

package node

// decision is what a pass does.
type decision struct {
	// providerID is the one that the Node gets; empty is none.
	providerID string
	// mismatch is the provider ID that the Node has instead of its Machine's; empty when there is none. It is never changed: the API server
	// refuses that.
	mismatch string
}

// decide compares a Node with its Machine. It is pure.
func decide(s *scope) decision {
	switch {
	case s.machine == nil || s.node == nil:
		return decision{}
	case s.node.CreationTimestamp.Before(&s.machine.CreationTimestamp):
		return decision{} // The Node is that of an earlier Machine of this name.
	case s.node.Spec.ProviderID == "":
		return decision{providerID: s.machine.Spec.ProviderID}
	case s.node.Spec.ProviderID != s.machine.Spec.ProviderID:
		return decision{mismatch: s.node.Spec.ProviderID}
	default:
		return decision{}
	}
}
