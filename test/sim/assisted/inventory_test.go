// SPDX-License-Identifier: Apache-2.0

package assisted

import "testing"

// TestHasInventory: between a registration or a bind and the report of the hardware, the check of it fails.
func TestHasInventory(t *testing.T) {
	for _, view := range []hostView{{validated: true}, {validated: true, inventory: &HostHardware{}}} {
		want := "failure"
		if view.inventory != nil {
			want = "success"
		}
		if got := validationsInfo(view)["hardware"][0]; got.ID != "has-inventory" || got.Status != want {
			t.Errorf("the check of the inventory %v is %v, want %s", view.inventory, got, want)
		}
	}
}
