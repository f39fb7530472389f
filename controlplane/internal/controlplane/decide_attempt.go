// SPDX-License-Identifier: Apache-2.0

package controlplane

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
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// retryAsked reports whether the next attempt begins: only once the current one has failed, so that an annotation that was set too early
// waits (DESIGN D18).
func retryAsked(s *scope) bool {
	_, asked := s.controlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	if asked && lost(s) != "" {
		return true
	}
	return asked && s.install != nil && s.install.Annotations[controlplanev1.InstallAttemptAnnotation] == view.Attempt(s.controlPlane) &&
		assisted.PhaseOf(s.install) == assisted.PhaseFailed
}

// mayRetry reports whether the next attempt begins now, and otherwise when it begins by itself, if it does.
func mayRetry(s *scope) (now bool, at time.Time) {
	if retryAsked(s) {
		return true, time.Time{}
	}
	at, ok := view.LostOf(s.controlPlane).Next()
	if !ok {
		return false, time.Time{}
	}
	if at.After(s.now) {
		return false, at
	}
	return true, time.Time{}
}

// loweredAttempt is the attempt that the objects of the control plane were made for, when its annotation asks for a lower one; empty
// otherwise. The number never goes down: somebody has replaced the control plane by a manifest without the annotation, and the objects that
// belong to a later attempt would look like those of an earlier one and be deleted, with the hosts that are being installed.
func loweredAttempt(s *scope) string {
	if s.installed() {
		return ""
	}
	objects := make([]metav1.Object, 0, len(s.machines)+2)
	for _, m := range s.machines {
		objects = append(objects, m)
	}
	if s.clusterDeployment != nil {
		objects = append(objects, s.clusterDeployment)
	}
	if s.install != nil {
		objects = append(objects, s.install)
	}
	wanted, _ := strconv.Atoi(view.Attempt(s.controlPlane)) // What is no number counts as 0.
	highest := wanted
	for _, o := range objects {
		if attempt, err := strconv.Atoi(o.GetAnnotations()[controlplanev1.InstallAttemptAnnotation]); err == nil {
			highest = max(highest, attempt)
		}
	}
	if highest == wanted {
		return ""
	}
	return strconv.Itoa(highest)
}

// lost names the objects of an installation that are gone after it had begun; empty when none is. Made anew, they would wait for hosts that
// are half installed and never register again: the next attempt replaces them. So it is as well with an installation that was complete and
// not recorded yet: nothing tells it from one that broke off, and its cluster was handed to nobody, since the control plane is not
// initialized (DESIGN D11). Once it is recorded, the cluster is kept and imported: see decideImport.
func lost(s *scope) string {
	if s.installed() || s.started.Attempt != view.Attempt(s.controlPlane) {
		return ""
	}
	var kinds []string
	if s.clusterDeployment == nil {
		kinds = append(kinds, "ClusterDeployment")
	}
	if s.install == nil {
		kinds = append(kinds, "AgentClusterInstall")
	}
	if len(kinds) == 0 {
		return ""
	}
	return strings.Join(kinds, " and ") + " " + s.controlPlane.Name
}

// decideStart has the control plane remember that the installation begins before it does, and that it has not after all when day 1 is
// opened again. The hold stays until that is written: otherwise a crash might leave an installation that nobody knows to have begun.
func decideStart(s *scope, d *decision) {
	if s.installed() || s.install == nil || s.clusterDeployment == nil {
		return
	}
	_, closed := assisted.DayOneAgents(s.install)
	starting, begun := d.dayOne.Action == plan.DayOneStart, closed && !s.install.Spec.HoldInstallation
	recorded := s.started.Attempt == view.Attempt(s.controlPlane)
	switch {
	case starting, begun && !recorded:
		var claims []string
		for _, w := range dayOneWorkers(s) {
			claims = append(claims, assisted.Claim(w))
		}
		value := view.StartedNow(s.controlPlane, claims).String()
		if value == s.controlPlane.Annotations[controlplanev1.InstallationStartedAnnotation] {
			return
		}
		d.start = &value
	case recorded && !begun && assisted.PhaseOf(s.install) == assisted.PhaseWaiting:
		d.start = new("")
	}
	if d.start != nil && starting {
		d.dayOne = plan.DayOneStep{Note: d.dayOne.Note}
	}
}

// stale reports whether objects of an earlier attempt exist, and which Machines are to be deleted: those of the control plane, and the
// workers whose hosts were part of the failed installation and have to be power-cycled. An installed cluster has no earlier attempt:
// without this line, a changed or lost annotation would take it down.
func stale(s *scope) (bool, []*clusterv1.Machine) {
	if s.installed() {
		return false, nil
	}
	attempt := view.Attempt(s.controlPlane)
	old := func(o metav1.Object) bool {
		return o.GetAnnotations()[controlplanev1.InstallAttemptAnnotation] != attempt
	}
	exists := false
	var machines []*clusterv1.Machine
	for _, m := range s.machines.SortedByCreationTimestamp() {
		if old(m) {
			exists = true
			machines = append(machines, m)
		}
	}
	if s.clusterDeployment != nil && old(s.clusterDeployment) {
		exists = true
	}
	if s.install != nil && old(s.install) {
		exists = true
		machines = append(machines, dayOneWorkers(s)...)
	}
	machines = append(machines, startedWorkers(s)...)
	machines = slices.DeleteFunc(machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
	sort.Slice(machines, func(i, j int) bool { return machines[i].Name < machines[j].Name })
	machines = slices.Compact(machines)
	return exists || len(machines) > 0, machines
}

// startedWorkers are the worker Machines that took part in an earlier attempt, also when its AgentClusterInstall, which names their Agents,
// is gone.
func startedWorkers(s *scope) []*clusterv1.Machine {
	if s.started.Attempt == view.Attempt(s.controlPlane) {
		return nil
	}
	return slices.DeleteFunc(
		slices.Clone(s.workers), func(m *clusterv1.Machine) bool { return !slices.Contains(s.started.Workers, assisted.Claim(m)) },
	)
}

// dayOneWorkers are the worker Machines whose Agents are in the set of the first installation.
func dayOneWorkers(s *scope) []*clusterv1.Machine {
	names, _ := assisted.DayOneAgents(s.install)
	claims := sets.New[string]()
	for i := range s.agents {
		if slices.Contains(names, s.agents[i].Name) {
			claims.Insert(s.agents[i].Annotations[bootstrapv1.ClaimAnnotation])
		}
	}
	var machines []*clusterv1.Machine
	for _, w := range s.workers {
		if claims.Has(assisted.Claim(w)) {
			machines = append(machines, w)
		}
	}
	return machines
}
