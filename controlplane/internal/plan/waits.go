// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/capi-openshift/agent-providers/controlplane/internal/view"

// Waits reports whether something goes on, of which every change in the installed cluster is to be known at once: the control plane has not
// settled, a Machine is to come or to go, or a release is. Every decision that depends on the installed cluster is made then, by what a
// watch tells.
func Waits(v *view.View) bool {
	return !v.Initialized() || !v.Life.Installed() || !view.Settled(v.ControlPlane) || IsUpgrading(v) || AsksUpdates(v) || AsksMembers(v)
}
