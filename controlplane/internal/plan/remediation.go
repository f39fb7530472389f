// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

const (
	// DefaultMinHealthyPeriod is how long a replacement has to be healthy before it counts as one: longer than in Cluster API's own provider,
	// because the replacement of a host alone takes 30 to 90 minutes.
	DefaultMinHealthyPeriod = 4 * time.Hour

	// connectionSettle is how long the API of the cluster has to answer again before what a MachineHealthCheck says is acted on: it has not
	// seen the Nodes for as long as the network was cut, and takes a moment to see them again.
	connectionSettle = 2 * time.Minute
)

// Verdict is what the condition OwnerRemediated of a Machine says.
type Verdict struct {
	Reason, Message string
}

// RemediationDecision is about the Machines that a MachineHealthCheck found unhealthy (DESIGN D26).
type RemediationDecision struct {
	// Recovered are healthy again: their condition OwnerRemediated goes.
	Recovered []*clusterv1.Machine
	// Record is written to the annotation RemediationInProgressAnnotation, before anything is deleted; nil when there is nothing to write.
	Record *view.Remediation
	// Done: the remediation that the annotation records has ended, and the annotation goes.
	Done bool
	// Delete is the Machine to delete; nil when none is.
	Delete *clusterv1.Machine
	// Verdicts are those about the unhealthy Machines, by name.
	Verdicts map[string]Verdict
	// RetryAt is when a Machine may be replaced that may not be now; zero when no time tells.
	RetryAt time.Time
}

// DecideRemediation decides about one Machine at a time. A pass records which, and a later one deletes it, so that whatever happens in
// between, its replacement is known to be one.
func DecideRemediation(v *view.View) RemediationDecision {
	d := RemediationDecision{Verdicts: map[string]Verdict{}}
	for _, m := range v.Machines.Owned.SortedByCreationTimestamp() {
		if view.HasRecovered(m) {
			d.Recovered = append(d.Recovered, m)
		}
	}
	current := view.RemediationInProgress(v.ControlPlane)
	d.Done = current != nil && remediated(v, *current)
	for _, m := range unhealthy(v) {
		switch {
		case current != nil && !d.Done && current.Machine != m.Name && occupies(v, *current, m):
			d.Verdicts[m.Name] = deferred("Machine %s is replaced first", current.Machine)
		case d.Delete != nil:
			d.Verdicts[m.Name] = deferred("Machine %s is replaced first", d.Delete.Name)
		case d.Record != nil:
			d.Verdicts[m.Name] = deferred("Machine %s is replaced first", d.Record.Machine)
		default:
			d.decide(v, m, current)
		}
	}
	return d
}

// decide decides about the unhealthy Machine whose turn it is.
func (d *RemediationDecision) decide(v *view.View, m *clusterv1.Machine, current *view.Remediation) {
	record, verdict, retryAt := mayRemediate(v, m)
	if verdict == (Verdict{}) {
		verdict = etcdVerdict(v, m)
	}
	recorded := current != nil && !d.Done && current.Machine == m.Name
	switch {
	case verdict != (Verdict{}):
		d.Verdicts[m.Name] = verdict
		d.Done = d.Done || recorded // It may be another one's turn.
		if !retryAt.IsZero() && (d.RetryAt.IsZero() || retryAt.Before(d.RetryAt)) {
			d.RetryAt = retryAt
		}
	case recorded:
		d.Delete = m
		d.Verdicts[m.Name] = Verdict{controlplanev1.MachineRemediationDeletingReason, "Machine is being deleted and replaced"}
	case current == nil, !d.Done && !recorded:
		d.Record = &record // In the place of one whose Machine is gone, or waits for this one to leave etcd.
	}
	// Else: what an earlier remediation has recorded is removed first, which triggers the next pass.
}

// RemediationAsksMembers reports whether a Machine is unhealthy that only etcd may keep.
func RemediationAsksMembers(v *view.View) bool {
	if !v.Life.Installed() || !v.Initialized() {
		return false
	}
	return slices.ContainsFunc(unhealthy(v), func(m *clusterv1.Machine) bool {
		_, verdict, _ := mayRemediate(v, m)
		return verdict == (Verdict{})
	})
}

// unhealthy are the Machines that wait to be replaced, the most broken first: those that a user marked, those without a Node, those whose
// Node is not ready, and then the oldest.
func unhealthy(v *view.View) []*clusterv1.Machine {
	machines := v.Machines.Owned.Filter(view.AsksForRemediation).SortedByCreationTimestamp()
	slices.SortStableFunc(machines, func(a, b *clusterv1.Machine) int {
		return cmp.Or(
			before(annotations.HasRemediateMachine(a), annotations.HasRemediateMachine(b)),
			before(!a.Status.NodeRef.IsDefined(), !b.Status.NodeRef.IsDefined()),
			before(!nodeReady(a), !nodeReady(b)),
		)
	})
	return machines
}

// remediated reports whether a recorded remediation has ended: its replacement exists, or none is needed any more.
func remediated(v *view.View, record view.Remediation) bool {
	for _, m := range v.Machines.Owned {
		if made := view.RemediationFor(m); made != nil && made.String() == record.String() {
			return true
		}
	}
	m, exists := v.Machines.Owned[record.Machine]
	if !exists {
		return len(v.Machines.Owned) >= int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))+surging(v)
	}
	return m.DeletionTimestamp.IsZero() && !view.AsksForRemediation(m)
}

// occupies reports whether a recorded remediation is at a point at which another Machine may not go. One whose Machine is gone may wait for
// another unhealthy one to leave etcd.
func occupies(v *view.View, record view.Remediation, other *clusterv1.Machine) bool {
	m := v.Machines.Owned[record.Machine]
	return m != nil && !standsAside(v, m, other) && !remediated(v, record)
}

func deferred(format string, args ...any) Verdict {
	return Verdict{controlplanev1.MachineRemediationDeferredReason, fmt.Sprintf(format, args...)}
}

func impossible(format string, args ...any) Verdict {
	return Verdict{controlplanev1.MachineCannotBeRemediatedReason, fmt.Sprintf(format, args...)}
}

// mayRemediate says, without asking etcd, why a Machine is not replaced now, and from when it may be; the verdict is empty when it may.
func mayRemediate(v *view.View, m *clusterv1.Machine) (record view.Remediation, verdict Verdict, retryAt time.Time) {
	switch {
	case !v.Life.Installed() && !mayRemoveMachines(v):
		return record, deferred("The installation has begun or has failed, and its hosts are one unit: it has to complete or to begin again"),
			retryAt
	case v.Life.Installed():
		if verdict, retryAt = unfitForReplacement(v, m); verdict != (Verdict{}) {
			return record, verdict, retryAt
		}
	}
	return retryLimits(v, m)
}

// unfitForReplacement says why no host of an installed cluster is replaced now, whatever etcd says.
func unfitForReplacement(v *view.View, m *clusterv1.Machine) (verdict Verdict, retryAt time.Time) {
	if problems := unfitTopology(v); len(problems) > 0 {
		return impossible("%s", problems[0]), retryAt
	}
	if problems := unpropagated(v); len(problems) > 0 {
		return deferred("%s", problems[0]), retryAt
	}
	if why, retryAt := unheard(v); why != "" {
		return deferred("%s", why), retryAt
	}
	if view.NeedsEtcdHook(v.ControlPlane) && !view.HasEtcdHook(m) {
		return deferred("Machine %s has not got the annotation %s yet", m.Name, controlplanev1.EtcdHookAnnotation), retryAt
	}
	for _, other := range v.Machines.Owned.SortedByCreationTimestamp() {
		switch {
		case other.Name == m.Name || standsAside(v, other, m) || view.AsksForRemediation(other):
		case !other.DeletionTimestamp.IsZero():
			return deferred("%s", beingDeleted(other)), retryAt
		case !other.Status.NodeRef.IsDefined():
			return deferred("Machine %s has no Node yet", other.Name), retryAt
		}
	}
	return Verdict{}, retryAt
}

// unheard says why what is known of the Nodes may be old, and from when it is not; empty when it is new.
func unheard(v *view.View) (why string, until time.Time) {
	probe := conditions.Get(v.Cluster, clusterv1.ClusterRemoteConnectionProbeCondition)
	switch {
	case probe == nil || probe.Status != metav1.ConditionTrue:
		return "The API of the cluster does not answer Cluster API: nobody knows how its hosts are", until
	case v.Now.Before(probe.LastTransitionTime.Add(connectionSettle)):
		until = probe.LastTransitionTime.Add(connectionSettle)
		return fmt.Sprintf("The API of the cluster answers again since %s, and its Nodes may be ready: the next look is at %s",
			probe.LastTransitionTime.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)), until
	}
	return "", until
}

func living(m *clusterv1.Machine) bool { return m.DeletionTimestamp.IsZero() }

// retryLimits counts the replacements of a Machine that became unhealthy themselves, as Cluster API's own provider does.
func retryLimits(v *view.View, m *clusterv1.Machine) (record view.Remediation, verdict Verdict, retryAt time.Time) {
	record = view.Remediation{Machine: m.Name, Timestamp: metav1.NewTime(v.Now.UTC().Truncate(time.Second))}
	last, limits := view.RemediationFor(m), v.ControlPlane.Spec.Remediation
	if last == nil || !v.Now.Before(last.Timestamp.Add(seconds(limits.MinHealthyPeriodSeconds, DefaultMinHealthyPeriod))) {
		return record, Verdict{}, retryAt
	}
	record.RetryCount = last.RetryCount + 1
	if limits.MaxRetry != nil && last.RetryCount >= int(*limits.MaxRetry) {
		return record, impossible("%d replacements in a row have failed (spec.remediation.maxRetry): find out why, and then delete Machine %s",
			last.RetryCount+1, m.Name), retryAt
	}
	if next := last.Timestamp.Add(seconds(limits.RetryPeriodSeconds, 0)); v.Now.Before(next) {
		return record, deferred("Machine %s was made at %s in place of an unhealthy one, and may itself be replaced from %s on "+
			"(spec.remediation.retryPeriodSeconds)",
			m.Name, last.Timestamp.UTC().Format(time.RFC3339), next.UTC().Format(time.RFC3339)), next
	}
	return record, Verdict{}, retryAt
}

// seconds is a number of seconds of the API as a duration.
func seconds(value *int32, unset time.Duration) time.Duration {
	if value == nil {
		return unset
	}
	return time.Duration(*value) * time.Second
}

// etcdVerdict says why etcd cannot do without the member of a Machine; it is empty when it can, and when the Machine has none. A Machine
// without a Node is asked for too: its host may have joined under a name that nobody knows, and the hook of etcd would keep the Machine for
// ever. That hook looks again before the member goes.
func etcdVerdict(v *view.View, m *clusterv1.Machine) Verdict {
	if !v.Life.Installed() {
		return Verdict{}
	}
	if v.Workload.MachineAPI {
		return impossible("%s", unchangeable(v))
	}
	if why := unchangeable(v); why != "" {
		return deferred("%s", why)
	}
	if why := updatedElsewhere(v, m); why != "" && m.Status.NodeRef.IsDefined() {
		return deferred("%s", why)
	}
	etcd, host := etcdOf(v), etcdHostOf(v, m)
	var others []EtcdHost
	for _, other := range v.Machines.Owned {
		if other.Name != m.Name {
			others = append(others, etcdHostOf(v, other))
		}
	}
	member, problem := etcd.memberOf(Leaving{EtcdHost: host}, others)
	switch {
	case problem != "":
		return deferred("%s", problem)
	case member == nil:
		return Verdict{}
	}
	if why := etcd.mayServeAgain(*member, host); why != "" {
		return deferred("%s", why)
	}
	why := etcd.MayLose(*member)
	switch voters, _, _ := etcd.count(); {
	case why == "":
		return Verdict{}
	case !member.Healthy || voters < minVoters:
		return impossible("%s", why)
	}
	return deferred("%s", why)
}

// updatedElsewhere says that another host of the control plane is being restarted: it would be away beside the one that goes.
func updatedElsewhere(v *view.View, m *clusterv1.Machine) string {
	updates := v.Workload.Updates
	if updates == nil {
		return "The installed cluster has not said whether its hosts are about to be restarted"
	}
	if updates.PoolUpdating.False() && !heldBack(updates) {
		return ""
	}
	// A host that goes too is none that comes back by itself: one would wait for the other for ever.
	gone := []*workload.ControlPlaneNode{v.Workload.NodeOf(m)}
	for _, other := range v.Machines.Owned {
		if view.KeepsHost(other) || view.AsksForRemediation(other) {
			gone = append(gone, v.Workload.NodeOf(other))
		}
	}
	for i := range v.Workload.Nodes {
		node := &v.Workload.Nodes[i]
		if !slices.Contains(gone, node) && (node.Cordoned || !node.Ready) {
			return elsewhere(updates, node.Name)
		}
	}
	return ""
}

// elsewhere says that the host of a Node is updated, or may be although MachineConfigPool master is paused.
func elsewhere(updates *workload.Updates, node string) string {
	if updates.PoolUpdating.False() {
		return fmt.Sprintf("MachineConfigPool master is paused before all its hosts are up to date, and Node %s is cordoned or not ready: its "+
			"host may restart yet, and has to be back first; see \"An update and a dead host wait for each other\" in the troubleshooting "+
			"guide", node)
	}
	return fmt.Sprintf("MachineConfigPool master is updating its hosts, and Node %s is cordoned or not ready: %s", node,
		updates.PoolUpdating.Message)
}
