// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"sort"
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// RolloutDecision is about the Machines of an installed cluster that are outdated (DESIGN D27).
type RolloutDecision struct {
	// Due are the names of the outdated Machines that are replaced one after the other, and Waiting of those that stay until a user deletes
	// or marks them.
	Due, Waiting []string
	// Delete is the outdated Machine to delete before another takes its place; nil when none is.
	Delete *clusterv1.Machine
	// Surge: a Machine is created before an outdated one is deleted.
	Surge bool
	// Blockers say, in words, why no Machine that is due is replaced now.
	Blockers []string
	// Fixed are the outdated Machines of a cluster whose hosts cannot be replaced, and Unfit says why.
	Fixed []string
	Unfit string
	// AfterAt is when spec.rollout.after passes; zero when it is not set or has passed. RetryAt is until when a Machine that is due waits;
	// zero when no time tells.
	AfterAt, RetryAt time.Time
}

// DecideRollout decides about one outdated Machine at a time. The steps of a replacement need no record: which comes next follows from how
// many Machines there are, and from which of them are outdated.
func DecideRollout(v *view.View) RolloutDecision {
	var d RolloutDecision
	if after := v.ControlPlane.Spec.Rollout.After; v.Now.Before(after.Time) {
		d.AfterAt = after.Time
	}
	if !v.Life.Installed() {
		return d
	}
	if problems := unfitTopology(v); len(problems) > 0 {
		d.Unfit = problems[0]
	}
	due := collections.New()
	for _, m := range v.Machines.Owned.Filter(living) {
		switch {
		case len(outdatedBy(v, m)) == 0:
		case d.Unfit != "":
			d.Fixed = append(d.Fixed, m.Name)
		case isDue(v, m):
			due.Insert(m)
		default:
			d.Waiting = append(d.Waiting, m.Name)
		}
	}
	d.Due = due.Names()
	sort.Strings(d.Due)
	sort.Strings(d.Waiting)
	sort.Strings(d.Fixed)
	if replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)); len(due) == 0 || len(v.Machines.Owned.Filter(living)) != replicas {
		return d // When Machines are too many, an outdated one goes first anyway; when one is missing, it comes first.
	}
	d.decideNext(v, Surplus(due, outdatedIn(v)))
	return d
}

// decideNext decides about the Machine whose turn it is.
func (d *RolloutDecision) decideNext(v *view.View, target *clusterv1.Machine) {
	d.Blockers = remediations(v)
	for _, m := range v.Machines.Owned.SortedByCreationTimestamp() {
		if !m.DeletionTimestamp.IsZero() {
			d.Blockers = append(d.Blockers, beingDeleted(m))
		}
	}
	if len(d.Blockers) > 0 {
		return
	}
	if ptr.Deref(v.ControlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, 0) > 0 {
		d.Surge = true
		return
	}
	if d.Blockers, d.RetryAt = unfitToLose(v, target); len(d.Blockers) == 0 {
		d.Delete = target
	}
}

// surging is how many Machines there are to be beyond the replicas, while outdated ones are replaced.
func surging(v *view.View) int {
	due := v.Machines.Owned.Filter(living, outdatedIn(v), func(m *clusterv1.Machine) bool { return isDue(v, m) })
	if !v.Life.Installed() || len(due) == 0 {
		return 0
	}
	return int(ptr.Deref(v.ControlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, 0))
}

// isDue reports whether an outdated Machine is replaced without being deleted by a user: rollout.after and the annotation are wishes of a
// user already.
func isDue(v *view.View, m *clusterv1.Machine) bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	return marked || v.ControlPlane.Spec.Rollout.Strategy.Type == controlplanev1.RollingUpdateRollout || expired(v, m)
}

// outdatedIn tells which Machines are outdated.
func outdatedIn(v *view.View) func(*clusterv1.Machine) bool {
	return func(m *clusterv1.Machine) bool { return len(outdatedBy(v, m)) > 0 }
}

// remediations names the Machines that are replaced first, because they are not healthy.
func remediations(v *view.View) []string {
	var blockers []string
	current := view.RemediationInProgress(v.ControlPlane)
	if current != nil && !remediated(v, *current) {
		blockers = append(blockers, fmt.Sprintf("Machine %s, which is not healthy, is being replaced", current.Machine))
	}
	for _, m := range unhealthy(v) {
		if current == nil || current.Machine != m.Name {
			blockers = append(blockers, fmt.Sprintf("Machine %s is not healthy", m.Name))
		}
	}
	return blockers
}
