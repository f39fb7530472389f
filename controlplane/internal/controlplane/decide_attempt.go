// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// retryAsked reports whether the next attempt begins: only once the current one has failed, so that an annotation that was set too early
// waits (DESIGN D18).
func retryAsked(s *scope) bool {
	_, asked := s.controlPlane.Annotations[controlplanev1.RetryInstallationAnnotation]
	return asked && s.install != nil && s.install.Annotations[controlplanev1.InstallAttemptAnnotation] == plan.Attempt(s.controlPlane) &&
		assisted.PhaseOf(s.install) == assisted.PhaseFailed
}

// stale reports whether objects of an earlier attempt exist, and which Machines are to be deleted: those of the control plane, and the
// workers whose hosts were part of the failed installation and have to be power-cycled. An installed cluster has no earlier attempt: without
// this line, a changed or lost annotation would take it down.
func stale(s *scope) (bool, []*clusterv1.Machine) {
	if s.installed() {
		return false, nil
	}
	attempt := plan.Attempt(s.controlPlane)
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
	machines = slices.DeleteFunc(machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
	sort.Slice(machines, func(i, j int) bool { return machines[i].Name < machines[j].Name })
	return exists, machines
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
		if claims.Has(claimOf(w)) {
			machines = append(machines, w)
		}
	}
	return machines
}
