// SPDX-License-Identifier: Apache-2.0

// Package metrics makes the metrics of the bootstrap manager (internal/metrics says what they are). Counters and histograms count what a
// pass has written: they compare a config as it was stored with the config as it is stored now. A manager that ends between the write and
// the count loses one; none counts anything twice.
package metrics

import (
	"slices"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

var (
	phaseSeconds  = metrics.MachinePhaseSeconds.NewHistogram()
	imageSeconds  = metrics.ImageReadySeconds.NewHistogram()
	agentsRefused = refusals(metrics.AgentsRefusedTotal)
)

func init() { ctrlmetrics.Registry.MustRegister(phaseSeconds, imageSeconds, agentsRefused) }

// refusals has all its series from the beginning: the first refusal is an increase then.
func refusals(d metrics.Definition) *prometheus.CounterVec {
	counter := d.NewCounter()
	for _, reason := range metrics.RefusedReasons {
		counter.WithLabelValues(reason)
	}
	return counter
}

// begin lets the series of histograms begin with 0: the first observation of a series that begins with it is no increase to Prometheus.
func begin() {
	labels := metrics.MachinePhaseSeconds.Labels
	for _, phase := range labels[0].Values {
		for _, role := range labels[1].Values {
			for _, day := range labels[2].Values {
				phaseSeconds.WithLabelValues(phase, role, day)
			}
		}
	}
	imageSeconds.WithLabelValues()
}

// reached says whether a stored config has reached a phase.
type reached int

const (
	no reached = iota
	yes
	// unknown: the config does not tell, and what follows from it is not counted.
	unknown
)

// milestones are the phases that a config tells of, in their order.
var milestones = []struct {
	phase string
	of    func(*bootstrapv1.OpenshiftAssistedConfig) reached
}{
	{metrics.PhaseMedia, media},
	{metrics.PhaseHostChosen, hostChosen},
	{metrics.PhaseBooted, booted},
	{metrics.PhaseRecognised, recognised},
	{metrics.PhaseBound, bound},
	{metrics.PhaseInstalling, installing},
	{metrics.PhaseInstalled, installed},
}

// Phases are the phases that a Machine has reached by what was written to its config. A Machine that was moved here, or is being deleted,
// reaches none.
func Phases(before, after *bootstrapv1.OpenshiftAssistedConfig) []string {
	if !after.DeletionTimestamp.IsZero() || conditions.GetReason(after, bootstrapv1.HostRecognizedCondition) == bootstrapv1.NodeJoinedReason {
		return nil
	}
	var phases []string
	for _, milestone := range milestones {
		if milestone.of(before) == no && milestone.of(after) == yes {
			phases = append(phases, milestone.phase)
		}
	}
	return phases
}

func answer(is bool) reached {
	if is {
		return yes
	}
	return no
}

func media(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	if conditions.GetReason(c, bootstrapv1.DiscoveryImageReadyCondition) == bootstrapv1.DiscoveryImageNotNeededReason {
		return unknown // It was published where the Machine comes from.
	}
	return answer(ptr.Deref(c.Status.Initialization.DataSecretCreated, false))
}

func hostChosen(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	switch conditions.GetReason(c, bootstrapv1.HostHealthyCondition) {
	case bootstrapv1.HostHealthyReason, bootstrapv1.HostErrorReason, bootstrapv1.HostMissingReason:
		return yes
	}
	return no
}

func booted(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	switch conditions.GetReason(c, bootstrapv1.HostRecognizedCondition) {
	case "", bootstrapv1.WaitingForHostReason, bootstrapv1.WaitingForCRDsReason:
		return no
	case bootstrapv1.ReadFailedReason:
		return unknown
	}
	return yes
}

func recognised(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	switch {
	case conditions.IsTrue(c, bootstrapv1.HostRecognizedCondition):
		return yes
	case bound(c) == yes, conditions.GetReason(c, bootstrapv1.HostRecognizedCondition) == bootstrapv1.ReadFailedReason:
		return unknown // It was recognised before, or may have been.
	}
	return no
}

// bound is told by a record that stays when the host is unbound or disputed later.
func bound(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	return answer(c.Annotations[bootstrapv1.InstallationDiskAnnotation] != "")
}

func installing(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	switch conditions.GetReason(c, bootstrapv1.AgentInstalledCondition) {
	case bootstrapv1.AgentInstallingReason, bootstrapv1.AgentPendingUserActionReason, bootstrapv1.AgentInstalledReason:
		return yes
	case bootstrapv1.AgentNeedsAttentionReason, bootstrapv1.AgentInstallationFailedReason, bootstrapv1.ReadFailedReason,
		bootstrapv1.NodeJoinedReason:
		return unknown // Each may come before and after the begin of the installation.
	}
	return no
}

func installed(c *bootstrapv1.OpenshiftAssistedConfig) reached {
	if conditions.IsTrue(c, bootstrapv1.AgentInstalledCondition) {
		return answer(conditions.GetReason(c, bootstrapv1.AgentInstalledCondition) == bootstrapv1.AgentInstalledReason)
	}
	return no
}

// refusedBy are the reasons of the condition HostRecognized for which Agents are refused.
var refusedBy = map[string]string{
	bootstrapv1.SeveralAgentsReason:         metrics.RefusedSeveralAgents,
	bootstrapv1.SeveralHostsReason:          metrics.RefusedSeveralHosts,
	bootstrapv1.DuplicateSerialNumberReason: metrics.RefusedDuplicateSerial,
	bootstrapv1.AgentClaimedByOtherReason:   metrics.RefusedClaimedByOther,
}

// Refusal is the reason for which an Agent was refused by what was written; empty when none was.
func Refusal(before, after *bootstrapv1.OpenshiftAssistedConfig) string {
	was, is := conditions.GetReason(
		before,
		bootstrapv1.HostRecognizedCondition,
	), conditions.GetReason(
		after,
		bootstrapv1.HostRecognizedCondition,
	)
	if refusedBy[was] != "" || was == bootstrapv1.ReadFailedReason {
		return ""
	}
	return refusedBy[is]
}

// ImageReady reports whether the first image of a config is ready by what was written.
func ImageReady(before, after *bootstrapv1.OpenshiftAssistedConfig) bool {
	ready := func(c *bootstrapv1.OpenshiftAssistedConfig) bool {
		return conditions.GetReason(c, bootstrapv1.DiscoveryImageReadyCondition) == bootstrapv1.DiscoveryImageReadyReason
	}
	return media(before) == no && !ready(before) && ready(after)
}

// Written is what a pass has written, with what its metrics need besides.
type Written struct {
	// Before is the config as it was stored when the pass began, and After as it is stored now.
	Before, After *bootstrapv1.OpenshiftAssistedConfig
	// Machine is the config's Machine; nil when it is gone.
	Machine *clusterv1.Machine
	// ImageSince is when the config's InfraEnv was created; zero when there is none.
	ImageSince metav1.Time
	// Now is the time of the pass.
	Now time.Time
}

// Count counts what a pass has written. day is asked only when a phase is counted.
func Count(w Written, day func() string) {
	if reason := Refusal(w.Before, w.After); reason != "" {
		agentsRefused.WithLabelValues(reason).Inc()
	}
	if ImageReady(w.Before, w.After) {
		since := w.After.CreationTimestamp
		if since.Before(&w.ImageSince) {
			since = w.ImageSince
		}
		imageSeconds.WithLabelValues().Observe(max(0, w.Now.Sub(since.Time).Seconds()))
	}
	if w.Machine == nil {
		return
	}
	if phases := Phases(w.Before, w.After); len(phases) > 0 {
		observe(w.Machine, day(), w.Now, phases...)
	}
}

func observe(machine *clusterv1.Machine, day string, now time.Time, phases ...string) {
	for _, phase := range phases {
		phaseSeconds.WithLabelValues(phase, roleOf(machine), day).Observe(max(0, now.Sub(machine.CreationTimestamp.Time).Seconds()))
	}
}

func roleOf(machine *clusterv1.Machine) string {
	if util.IsControlPlaneMachine(machine) {
		return metrics.RoleControlPlane
	}
	return metrics.RoleWorker
}

// Day is the day of the host with the Agent of this name, which may be empty, for a config that was created at a time. installs are the
// AgentClusterInstalls of its Cluster. A host that takes part in the first installation and comes back for a later Machine has the same
// Agent again.
func Day(agent string, created metav1.Time, cluster *clusterv1.Cluster, installs []*hiveext.AgentClusterInstall) string {
	for _, install := range installs {
		names, closed := assisted.DayOneAgents(install)
		switch {
		case createdAfter(created, install):
			return metrics.DayTwo
		case slices.Contains(names, agent), !closed && assisted.PhaseOf(install) != assisted.PhaseCompleted:
			return metrics.DayOne
		default:
			return metrics.DayTwo
		}
	}
	if cluster != nil && ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return metrics.DayTwo // The cluster was moved here.
	}
	return metrics.DayOne
}

// createdAfter reports whether a config was created after the installation was complete.
func createdAfter(created metav1.Time, install *hiveext.AgentClusterInstall) bool {
	c := assisted.ClusterCondition(install, hiveext.ClusterCompletedCondition)
	return c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() && c.LastTransitionTime.Before(&created)
}
