// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// DeletionStep is one state of the deletion of a control plane (DESIGN D12, CONTRACT CP-62).
type DeletionStep string

const (
	// DeletionWaitForWorkers: worker Machines or MachinePools exist; nothing is deleted.
	DeletionWaitForWorkers DeletionStep = "WaitForWorkers"
	// DeletionWaitForOrphaning: garbage collection takes the Machines from the control plane; nothing is deleted.
	DeletionWaitForOrphaning DeletionStep = "WaitForOrphaning"
	// DeletionMachines: delete all control-plane Machines in parallel and wait.
	DeletionMachines DeletionStep = "Machines"
	// DeletionWaitForHosts: hosts of Machines that are not the control plane's are bound to the ClusterDeployment; nothing is deleted.
	DeletionWaitForHosts DeletionStep = "WaitForHosts"
	// DeletionInstall: delete ClusterDeployment and AgentClusterInstall and wait.
	DeletionInstall DeletionStep = "Install"
	// DeletionImageSet: delete the ClusterImageSet and wait.
	DeletionImageSet DeletionStep = "ImageSet"
	// DeletionDone: nothing is left; the finalizer goes.
	DeletionDone DeletionStep = "Done"
)

// Leftovers is what exists of a control plane that is being deleted.
type Leftovers struct {
	// Workers, Pools and Machines are the names of worker Machines, MachinePools and control-plane Machines.
	Workers, Pools, Machines []string
	// Unfreed says of Machines whose hosts are not freed why.
	Unfreed []string
	// Orphaning: the control plane was deleted with --cascade=orphan, and garbage collection has not taken all Machines from it yet.
	Orphaning bool
	// Orphans are the names of Machines that the control plane does not control and whose hosts are bound to the ClusterDeployment.
	Orphans []string
	// Install are the ClusterDeployment and AgentClusterInstall that exist, as "<kind> <name>".
	Install []string
	// ImageSet is the name of the ClusterImageSet made for this control plane, or empty.
	ImageSet string
}

// Next returns the state of the deletion, and the reason and message of the condition Deleting.
func (l Leftovers) Next() (step DeletionStep, reason, message string) {
	switch {
	case len(l.Workers)+len(l.Pools) > 0:
		return DeletionWaitForWorkers, controlplanev1.WaitingForWorkersDeletionReason,
			"Waiting for the deletion of workers: " + summary(append(append([]string(nil), l.Workers...), l.Pools...)) + l.unfreed()
	case l.Orphaning:
		return DeletionWaitForOrphaning, controlplanev1.WaitingForOrphaningReason,
			"The control plane was deleted without its Machines (--cascade=orphan). Waiting until garbage collection has removed their owner " +
				"references, and finalizer orphan of the control plane"
	case len(l.Machines) > 0:
		return DeletionMachines, controlplanev1.WaitingForMachineDeletionReason,
			"Waiting for the deletion of Machines: " + summary(l.Machines) + l.unfreed()
	case len(l.Install) > 0 && len(l.Orphans) > 0:
		return DeletionWaitForHosts, controlplanev1.WaitingForOrphanedMachinesReason, fmt.Sprintf(
			"Machines that the control plane does not control run on hosts that are bound to its ClusterDeployment: %s. "+
				"%s must stay until these Machines are deleted, because assisted-service would take the hosts from the cluster",
			summary(l.Orphans), strings.Join(l.Install, " and "))
	case len(l.Install) > 0:
		return DeletionInstall, controlplanev1.WaitingForInstallDeletionReason, "Waiting for the deletion of " + strings.Join(l.Install, " and ")
	case l.ImageSet != "":
		return DeletionImageSet, controlplanev1.WaitingForInstallDeletionReason, "Waiting for the deletion of ClusterImageSet " + l.ImageSet
	default:
		return DeletionDone, controlplanev1.DeletionCompletedReason, ""
	}
}

// unfreed is a line for each of the first Machines whose hosts are not freed.
func (l Leftovers) unfreed() string {
	const shown = 3
	var lines strings.Builder
	for i, line := range l.Unfreed {
		if i == shown {
			fmt.Fprintf(&lines, "\n* and %d more", len(l.Unfreed)-shown)
			break
		}
		lines.WriteString("\n* " + line)
	}
	return lines.String()
}

// summary names at most three, sorted, and counts the rest, so that a message stays readable.
func summary(names []string) string {
	const shown = 3
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	if len(sorted) <= shown {
		return strings.Join(sorted, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(sorted[:shown], ", "), len(sorted)-shown)
}

// Serves reports whether an installed cluster has to be reached. It serves on while the deletion of its control plane waits for workers,
// however long that takes. Who takes the Machines from the control plane (--cascade=orphan) takes the Secrets too.
func Serves(v *view.View) bool {
	if v.Life != view.Deleting {
		return v.Life.Installed()
	}
	left := LeftoversOf(v)
	step, _, _ := left.Next()
	return v.Record != nil && v.Cluster != nil && step == DeletionWaitForWorkers && !left.Orphaning
}

// LeftoversOf lists what a deleted control plane still has to remove. What belongs to others is not part of it.
func LeftoversOf(v *view.View) Leftovers {
	l := Leftovers{
		Machines: v.Machines.Owned.Names(), Orphans: boundOrphans(v),
		Orphaning: slices.Contains(v.ControlPlane.Finalizers, metav1.FinalizerOrphanDependents),
	}
	l.Unfreed = append(unfreed(v, v.Machines.Workers), unfreed(v, v.Machines.Owned.UnsortedList())...)
	for _, w := range v.Machines.Workers {
		l.Workers = append(l.Workers, w.Name)
	}
	for i := range v.Machines.Pools {
		l.Pools = append(l.Pools, v.Machines.Pools[i].Name)
	}
	if v.Install.ClusterDeployment != nil && view.OwnedBy(v.Install.ClusterDeployment, v.ControlPlane) {
		l.Install = append(l.Install, "ClusterDeployment "+v.Install.ClusterDeployment.Name)
	}
	if v.Install.AgentClusterInstall != nil && view.OwnedBy(v.Install.AgentClusterInstall, v.ControlPlane) {
		l.Install = append(l.Install, "AgentClusterInstall "+v.Install.AgentClusterInstall.Name)
	}
	if v.Install.ImageSet != nil && view.OwnedBy(v.Install.ImageSet, v.ControlPlane) {
		l.ImageSet = v.Install.ImageSet.Name
	}
	return l
}

// boundOrphans are the names of the Machines that somebody has taken from the control plane on purpose and whose hosts are bound to its
// ClusterDeployment. Without it, assisted-service would unbind the hosts of running Nodes.
func boundOrphans(v *view.View) []string {
	others := sets.New(v.Machines.Foreign...)
	for _, m := range v.Machines.Orphans {
		others.Insert(m.Name)
	}
	bound := sets.New[string]()
	for _, a := range v.BoundAgents() {
		if machine, _, ok := a.ClaimedFor(); ok && others.Has(machine) {
			bound.Insert(machine)
		}
	}
	return sets.List(bound)
}
