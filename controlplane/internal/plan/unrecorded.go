// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// Unrecorded names the Machines that have Nodes, although their control plane has neither a record of an installed cluster nor begun an
// installation: a control plane was deleted and its Machines were orphaned, and another one of its name has no annotations. Their hosts are
// members of an etcd that may be in use, and an installation on them, or a host that goes without etcd being asked, would destroy it.
// Machines of an earlier attempt are what a failed installation has left.
func Unrecorded(v *view.View) []string {
	begun := v.Install.AgentClusterInstall != nil || v.Started.Attempt == view.Attempt(v.ControlPlane)
	if v.Life.Installed() || v.Life == view.Deleting || begun {
		return nil
	}
	var names []string
	for _, m := range slices.Concat(v.Machines.Owned.UnsortedList(), v.Machines.Orphans) {
		if m.Status.NodeRef.IsDefined() && !ofEarlierAttempt(v, m) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// ofEarlierAttempt reports whether a Machine was made for an attempt before the wanted one.
func ofEarlierAttempt(v *view.View, m *clusterv1.Machine) bool {
	attempt := view.AttemptNumber(view.AttemptOf(m))
	return attempt > 0 && attempt < view.AttemptNumber(view.Attempt(v.ControlPlane))
}
