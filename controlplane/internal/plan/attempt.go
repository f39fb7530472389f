// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// AttemptDecision is about the attempts to install: whether the current one goes on.
type AttemptDecision struct {
	// Restore is the number of the attempt that the objects were made for, when the control plane asks for a lower one; empty otherwise.
	Restore string
	// Lost names the objects of the installation that are gone after it had begun; empty when none is.
	Lost string
	// Repairable: the attempt had failed before it lost them, and its cluster may be repairable: the user has to ask for the next attempt.
	Repairable bool
	// Over: the attempt has lost its objects, or it has failed and the next one begins. Nothing else is decided.
	Over bool
	// Asked: the user asked for the next attempt, and the current one has failed or lost its objects.
	Asked bool
	// Retry is about the next attempt after one that has failed, unless the user asked for it.
	Retry RetryDecision
	// Start: the next attempt begins: the user asked for it and the current one has failed, Retry says so, or it has lost the objects that
	// Lost names.
	Start bool
	// RetryAt is when the next attempt begins by itself; zero when the user has to ask for it, or when it begins now.
	RetryAt time.Time
	// Retrying: objects of an earlier attempt exist; Stale are those Machines that are to be deleted first.
	Retrying bool
	Stale    []*clusterv1.Machine
}

// DecideAttempt decides whether the current attempt to install goes on, another one begins, or one that ended is cleaned up.
func DecideAttempt(v *view.View) AttemptDecision {
	var d AttemptDecision
	if d.Restore = loweredAttempt(v); d.Restore != "" {
		return d
	}
	d.Lost, d.Asked = lost(v), retryAsked(v)
	d.Repairable = d.Lost != "" && repairable(v)
	if d.Over = d.Lost != "" || d.Asked; d.Over {
		d.Start, d.RetryAt = mayRetry(v)
		return d
	}
	d.Retry = DecideRetry(v)
	d.Over, d.Start, d.RetryAt = d.Retry.Now, d.Retry.Now, d.Retry.At
	if d.Over {
		return d
	}
	d.Retrying, d.Stale = stale(v)
	return d
}

// Stands reports whether nothing else is decided before the attempt is.
func (d AttemptDecision) Stands() bool { return d.Restore != "" || d.Over || d.Retrying }

// retryAsked reports whether the next attempt begins: only once the current one has failed, so that an annotation that was set too early
// waits (DESIGN D18).
func retryAsked(v *view.View) bool {
	_, asked := v.ControlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	if asked && lost(v) != "" {
		return true
	}
	return asked && v.Life == view.Failed && view.AttemptOf(v.Install.AgentClusterInstall) == view.Attempt(v.ControlPlane)
}

// mayRetry reports whether the next attempt begins now, and otherwise when it begins by itself, if it does.
func mayRetry(v *view.View) (now bool, at time.Time) {
	if retryAsked(v) {
		return true, time.Time{}
	}
	at, ok := LostOf(v.ControlPlane).Next()
	if !ok || repairable(v) {
		return false, time.Time{}
	}
	if at.After(v.Now) {
		return false, at
	}
	return true, time.Time{}
}

// repairable reports whether the attempt has failed and its cluster may be repairable, so that no attempt begins by itself. Who has
// repaired it may tidy up what is left of its installation.
func repairable(v *view.View) bool { return FailedOf(v.ControlPlane).repairable() }

// loweredAttempt is the attempt that the objects of the control plane were made for, when its annotation asks for a lower one; empty
// otherwise. The number never goes down: somebody has replaced the control plane by a manifest without the annotation, and the objects that
// belong to a later attempt would look like those of an earlier one and be deleted, with the hosts that are being installed.
func loweredAttempt(v *view.View) string {
	if v.Life.Installed() {
		return ""
	}
	objects := make([]metav1.Object, 0, len(v.Machines.Owned)+2)
	for _, m := range v.Machines.Owned {
		objects = append(objects, m)
	}
	if v.Install.ClusterDeployment != nil {
		objects = append(objects, v.Install.ClusterDeployment)
	}
	if v.Install.AgentClusterInstall != nil {
		objects = append(objects, v.Install.AgentClusterInstall)
	}
	wanted := view.AttemptNumber(view.Attempt(v.ControlPlane))
	highest := wanted
	for _, o := range objects {
		highest = max(highest, view.AttemptNumber(view.AttemptOf(o)))
	}
	if highest == wanted {
		return ""
	}
	return strconv.Itoa(highest)
}

// lost names the objects of an installation that are gone after it had begun; empty when none is. Made anew, they would wait for hosts that
// are half installed and never register again: the next attempt replaces them. So it is as well with an installation that was complete and
// not recorded yet: nothing tells it from one that broke off, and its cluster was handed to nobody, since the control plane is not
// initialized (DESIGN D11). Once it is recorded, the cluster is kept and imported: see DecideImport.
func lost(v *view.View) string {
	if v.Life.Installed() || v.Started.Attempt != view.Attempt(v.ControlPlane) {
		return ""
	}
	var kinds []string
	if v.Install.ClusterDeployment == nil {
		kinds = append(kinds, "ClusterDeployment")
	}
	if v.Install.AgentClusterInstall == nil {
		kinds = append(kinds, "AgentClusterInstall")
	}
	if len(kinds) == 0 {
		return ""
	}
	return strings.Join(kinds, " and ") + " " + v.ControlPlane.Name
}

// stale reports whether objects of an earlier attempt exist, and which Machines are to be deleted: those of the control plane, and the
// workers whose hosts were part of the failed installation and have to be power-cycled. An installed cluster has no earlier attempt:
// without this line, a changed or lost annotation would take it down.
func stale(v *view.View) (bool, []*clusterv1.Machine) {
	if v.Life.Installed() {
		return false, nil
	}
	attempt := view.Attempt(v.ControlPlane)
	old := func(o metav1.Object) bool { return view.AttemptOf(o) != attempt }
	exists := false
	var machines []*clusterv1.Machine
	for _, m := range v.Machines.Owned.SortedByCreationTimestamp() {
		if old(m) {
			exists = true
			machines = append(machines, m)
		}
	}
	if v.Install.ClusterDeployment != nil && old(v.Install.ClusterDeployment) {
		exists = true
	}
	if v.Install.AgentClusterInstall != nil && old(v.Install.AgentClusterInstall) {
		exists = true
		machines = append(machines, dayOneWorkers(v)...)
	}
	machines = append(machines, startedWorkers(v)...)
	machines = slices.DeleteFunc(machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
	sort.Slice(machines, func(i, j int) bool { return machines[i].Name < machines[j].Name })
	machines = slices.Compact(machines)
	return exists || len(machines) > 0, machines
}

// startedWorkers are the worker Machines that took part in an earlier attempt, also when its AgentClusterInstall, which names their Agents,
// is gone.
func startedWorkers(v *view.View) []*clusterv1.Machine {
	if v.Started.Attempt == view.Attempt(v.ControlPlane) {
		return nil
	}
	return slices.DeleteFunc(
		slices.Clone(v.Machines.Workers), func(m *clusterv1.Machine) bool { return !slices.Contains(v.Started.Workers, assisted.Claim(m)) },
	)
}

// dayOneWorkers are the worker Machines whose Agents are in the set of the first installation.
func dayOneWorkers(v *view.View) []*clusterv1.Machine {
	names, _ := assisted.DayOneAgents(v.Install.AgentClusterInstall)
	return workersOf(v, names)
}

// workersOf are the worker Machines that Agents of these names are claimed for.
func workersOf(v *view.View, names []string) []*clusterv1.Machine {
	claims := sets.New[string]()
	for _, a := range v.Install.Agents {
		if slices.Contains(names, a.Name) {
			claims.Insert(a.Annotations[bootstrapv1.ClaimAnnotation])
		}
	}
	var machines []*clusterv1.Machine
	for _, w := range v.Machines.Workers {
		if claims.Has(assisted.Claim(w)) {
			machines = append(machines, w)
		}
	}
	return machines
}
