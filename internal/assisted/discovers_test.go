// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestDiscovers: only a state in which the host certainly runs the discovery image counts, and has nothing of an installation yet.
func TestDiscovers(t *testing.T) {
	for state, want := range map[string]bool{
		"discovering": true, "discovering-unbound": true, "known": true, "known-unbound": true, "insufficient": true,
		"insufficient-unbound": true, "disconnected": true, "disconnected-unbound": true, "pending-for-input": true, "binding": true,
		"preparing-for-installation": true, "preparing-successful": true, "preparing-failed": true,
		"": false, "installing": false, "installing-in-progress": false, "installing-pending-user-action": false, "installed": false,
		"added-to-existing-cluster": false, "error": false, "cancelled": false, "resetting": false, "unbinding": false,
		"unbinding-pending-user-action": false, "reclaiming": false, "reclaiming-rebooting": false,
	} {
		agent := &Agent{}
		agent.Status.DebugInfo.State = state
		NewWithT(t).Expect(agent.Discovers()).To(Equal(want), state)
	}
}
