// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// Surplus is the Machine that goes first of those that are not being deleted: nil when there are none (CONTRACT KCP-7). A user who marks a
// Machine decides; else those that are outdated go before the others, and of these the ones that are not healthy. Of equals, one
// whose Node is not ready goes before one whose Node is, because etcd would not let a healthy one go beside it; then one in the failure
// domain with most Machines, and then the oldest.
func Surplus(machines collections.Machines, outdated func(*clusterv1.Machine) bool) *clusterv1.Machine {
	living := machines.Filter(collections.Not(collections.HasDeletionTimestamp))
	perDomain := map[string]int{}
	for _, m := range living {
		perDomain[m.Spec.FailureDomain]++
	}
	sorted := living.SortedByCreationTimestamp()
	if len(sorted) == 0 {
		return nil
	}
	return slices.MinFunc(sorted, func(a, b *clusterv1.Machine) int {
		return cmp.Or(
			cmp.Compare(rank(a, outdated(a)), rank(b, outdated(b))),
			before(!nodeReady(a), !nodeReady(b)),
			cmp.Compare(perDomain[b.Spec.FailureDomain], perDomain[a.Spec.FailureDomain]),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// rank orders Machines by what is known against them: the lowest goes first.
func rank(m *clusterv1.Machine, outdated bool) int {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	unhealthy := conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition)
	switch {
	case marked && outdated:
		return 0
	case marked:
		return 1
	case outdated && unhealthy:
		return 2
	case outdated:
		return 3
	}
	return 4
}

// nodeReady reports whether a Machine's Node is known to be ready.
func nodeReady(m *clusterv1.Machine) bool {
	return conditions.IsTrue(m, clusterv1.MachineNodeReadyCondition)
}

// before orders what is so before what is not.
func before(first, second bool) int {
	switch {
	case first == second:
		return 0
	case first:
		return -1
	}
	return 1
}

// surplusTarget is the Machine of an installed cluster that goes next: one that has no Node yet before those that have one, unless a user
// marked another, or it is the one that takes the place of an outdated one. It may wait for a host for ever, and nobody else goes
// meanwhile.
func surplusTarget(v *view.View) *clusterv1.Machine {
	target := Surplus(v.Machines.Owned, outdatedIn(v))
	_, marked := target.Annotations[clusterv1.DeleteMachineAnnotation]
	wanted := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)) + surging(v)
	if marked || len(v.Machines.Owned.Filter(living)) <= wanted {
		return target
	}
	pending := v.Machines.Owned.Filter(func(m *clusterv1.Machine) bool { return !m.Status.NodeRef.IsDefined() })
	return cmp.Or(Surplus(pending, outdatedIn(v)), target)
}

// nextSurplus decides about a Machine that an installed cluster has too many. Its member leaves etcd before its host goes, whatever is
// decided here; a Machine that had to wait for that would be drained for nothing.
func nextSurplus(v *view.View) (surplus []*clusterv1.Machine, blockers []string, until time.Time) {
	target := surplusTarget(v)
	current := view.RemediationInProgress(v.ControlPlane)
	if current != nil && current.Machine != target.Name && occupies(v, *current, target) {
		return nil, []string{fmt.Sprintf("Machine %s, which is not healthy, is being replaced", current.Machine)}, until
	}
	if blockers, until = unfitToLose(v, target); len(blockers) > 0 {
		return nil, blockers, until
	}
	return []*clusterv1.Machine{target}, nil, until
}

// unfitToLose lists, in words, what has to happen before a Machine of an installed cluster goes that nobody has to replace, and until when
// it waits for nothing but time; zero when no time tells.
func unfitToLose(v *view.View, target *clusterv1.Machine) (blockers []string, until time.Time) {
	others := v.Machines.Owned.Filter(func(m *clusterv1.Machine) bool {
		// One that stands aside may wait for this one, whose member does not serve.
		return m.Name != target.Name && (nodeReady(target) || !standsAside(v, m, target))
	})
	blockers = append(unpropagated(v), unfitTopology(v)...)
	blockers = append(blockers, unsettled(v, others)...)
	if view.NeedsEtcdHook(v.ControlPlane) && !view.HasEtcdHook(target) {
		blockers = append(blockers, fmt.Sprintf("Machine %s has not got the annotation %s yet", target.Name, controlplanev1.EtcdHookAnnotation))
	}
	if problem := v.Workload.MachineAPIProblem; problem != nil {
		blockers = append(blockers, unknownMachineAPI(problem))
	}
	switch etcd := v.Workload.Etcd; {
	case v.Workload.OtherCluster != "":
		return append(blockers, OtherCluster(v)), until
	case etcd == nil:
		return append(blockers, "The installed cluster has not said how its etcd is"), until
	case !etcd.MembersAvailable.True():
		return append(blockers, "The operator of etcd does not say that its members are available: "+etcd.MembersAvailable.Message), until
	case !nodeReady(target):
		more, until := unfitToGiveUp(v, target)
		return append(blockers, more...), until
	case !etcd.MembersDegraded.False():
		return append(blockers, "Members of etcd are not healthy: "+etcd.MembersDegraded.Message), until
	}
	if problem := unjoined(v, v.Machines.Owned, 0); problem != "" {
		return append(blockers, problem), until
	}
	return append(blockers, unfitOperators(v)...), until
}

// unfitToGiveUp lists what keeps a Machine whose Node is not ready. It is what is wrong with etcd and its operators, unless it just
// restarts, or nobody has seen its Node for a moment. An update of the hosts does not go on while one is dead: each would wait for the
// other.
func unfitToGiveUp(v *view.View, target *clusterv1.Machine) (blockers []string, until time.Time) {
	why, until := unheard(v)
	if why == "" {
		why, until = mayReturn(v, target)
	}
	switch {
	case why != "":
		return append([]string{why}, restarts(v)...), until
	case target.Status.NodeRef.IsDefined() && down(v, target) && isHeard(v):
		return nil, until
	}
	return restarts(v), until
}

// isHeard reports whether the installed cluster, and no other one, says what restarts its hosts.
func isHeard(v *view.View) bool {
	return v.Workload.OtherCluster == "" && v.Workload.Updates != nil && v.Workload.Version != nil
}

// mayReturn says that a Node which is not ready may come back by itself, and until when it is waited for; empty when it is down, and when
// there is none. A host that restarts for another reason than an update would be wiped else, while etcd is one member short for minutes.
func mayReturn(v *view.View, m *clusterv1.Machine) (why string, until time.Time) {
	since := conditions.GetLastTransitionTime(m, clusterv1.MachineNodeReadyCondition)
	if !m.Status.NodeRef.IsDefined() || since == nil || down(v, m) {
		return "", until
	}
	until = since.Add(hostRestartWait)
	return fmt.Sprintf("The Node of Machine %s is not ready since %s, and its host may be restarting: it is waited for until %s", m.Name,
		since.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)), until
}
