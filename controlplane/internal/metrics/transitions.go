// SPDX-License-Identifier: Apache-2.0

// Package metrics makes the metrics of the control plane manager (internal/metrics says what they are). Counters and histograms count what
// a pass has written: they compare a control plane as it was stored with the control plane as it is stored now. A manager that ends
// between the write and the count loses one; none counts anything twice.
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

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

var (
	installs       = metrics.InstallsTotal.NewCounter()
	installSeconds = metrics.InstallSeconds.NewHistogram()
	upgrades       = metrics.UpgradesTotal.NewCounter()
	upgradeSeconds = metrics.UpgradeSeconds.NewHistogram()
	replacements   = replaced(metrics.ReplacementsTotal)
	resolveSeconds = metrics.ReleaseResolveSeconds.NewHistogram()
)

func init() {
	ctrlmetrics.Registry.MustRegister(installs, installSeconds, upgrades, upgradeSeconds, replacements, resolveSeconds)
}

// replaced has all its series from the beginning: the first replacement is an increase then.
func replaced(d metrics.Definition) *prometheus.CounterVec {
	counter := d.NewCounter()
	for _, result := range []string{metrics.ReplacementStarted, metrics.ReplacementCompleted, metrics.ReplacementFailed} {
		counter.WithLabelValues(metrics.CauseUnhealthy, result)
	}
	for _, result := range []string{metrics.ReplacementStarted, metrics.ReplacementCompleted} {
		counter.WithLabelValues(metrics.CauseOutdated, result)
	}
	return counter
}

// Topology is the topology of a control plane.
func Topology(cp *controlplanev1.OpenshiftAssistedControlPlane) string {
	switch {
	case cp.Spec.Install.TwoNode == controlplanev1.TwoNodeArbiter:
		return metrics.TopologyArbiter
	case cp.Spec.Install.TwoNode == controlplanev1.TwoNodeFencing:
		return metrics.TopologyFencing
	case ptr.Deref(cp.Spec.Replicas, 0) == 1:
		return metrics.TopologySingleNode
	}
	return metrics.TopologyHighlyAvailable
}

// Written is the status that a pass has written, with what its metrics need besides.
type Written struct {
	// Before is the control plane as it was stored, and After as it is stored now.
	Before, After *controlplanev1.OpenshiftAssistedControlPlane
	// Cause is why an installation has failed, one of the reasons of metrics.InstallsTotal.
	Cause string
	// Version is what the installed cluster says of its release; nil when it does not.
	Version *workload.ClusterVersion
	// Now is the time of the pass.
	Now time.Time
}

// Count counts what the status of a pass tells.
func Count(w Written) {
	if InstallFailed(w.Before, w.After) {
		installed(w.After, metrics.InstallFailed, w.Cause)
	}
	if release := Upgraded(w.Before, w.After); release != "" {
		upgrades.WithLabelValues(metrics.ReleaseMinor(release), metrics.UpgradeCompleted).Inc()
		if begin, end := upgradeTimes(w, release); !begin.IsZero() {
			upgradeSeconds.WithLabelValues().Observe(max(0, end.Sub(begin).Seconds()))
		}
	}
	if UpgradeFails(w.Before, w.After) {
		upgrades.WithLabelValues(metrics.ReleaseMinor(upgradesTo(w.After)), metrics.UpgradeFailed).Inc()
	}
	if result, took := Resolution(w.Before, w.After); result != "" {
		resolveSeconds.WithLabelValues(result).Observe(took.Seconds())
	}
}

// begin lets the series of a control plane's counters and histograms begin with 0: the first event of a series that begins with it is no
// increase to Prometheus.
func begin(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	topology, minor := Topology(cp), metrics.ReleaseMinor(cp.Spec.DistributionVersion)
	for result, reasons := range installReasons {
		for _, reason := range reasons {
			installs.WithLabelValues(topology, minor, result, reason)
		}
	}
	for _, result := range []string{metrics.UpgradeCompleted, metrics.UpgradeFailed} {
		upgrades.WithLabelValues(minor, result)
	}
	installSeconds.WithLabelValues(topology)
	upgradeSeconds.WithLabelValues()
}

// installReasons are the reasons that each result of an attempt to install a cluster may have.
var installReasons = map[string][]string{
	metrics.InstallCompleted: {""},
	metrics.InstallFailed:    {metrics.InstallReasonHost, metrics.InstallReasonCluster, metrics.InstallReasonCancelled},
	metrics.InstallRetried:   {metrics.InstallReasonAsked, metrics.InstallReasonAutomatic, metrics.InstallReasonLost},
}

func installed(cp *controlplanev1.OpenshiftAssistedControlPlane, result, reason string) {
	installs.WithLabelValues(Topology(cp), metrics.ReleaseMinor(cp.Spec.DistributionVersion), result, reason).Inc()
}

// InstallFailed reports whether an installation has failed by what was written. The phase stays what it is while the condition Installed
// says that something else stands in the way.
func InstallFailed(before, after *controlplanev1.OpenshiftAssistedControlPlane) bool {
	return before.Status.Install.Phase != controlplanev1.InstallPhaseFailed &&
		after.Status.Install.Phase == controlplanev1.InstallPhaseFailed
}

// Upgraded is the release that the cluster has been brought to by what was written; empty when it has not. The release that it is installed
// with, or was moved here with, is none.
func Upgraded(before, after *controlplanev1.OpenshiftAssistedControlPlane) string {
	if was := before.Status.DistributionVersion; was == "" || was == after.Status.DistributionVersion {
		return ""
	}
	return after.Status.DistributionVersion
}

// upgradeTimes are begin and end of the upgrade to a release, as the history of the cluster has them.
func upgradeTimes(w Written, release string) (begin, end time.Time) {
	if was := w.Before.Status.Upgrade; was.Version == release {
		begin = was.StartedTime.Time
	}
	if w.Version == nil {
		return begin, w.Now
	}
	for _, past := range w.Version.History {
		switch {
		case !past.Completed || past.Version != release:
		case past.Ended.IsZero():
			return past.Started, w.Now
		default:
			return past.Started, past.Ended
		}
	}
	return begin, w.Now
}

// upgradeFailures are the reasons of the condition Upgrading with which an upgrade has failed, or will.
var upgradeFailures = []string{
	controlplanev1.UpgradeFailingReason, controlplanev1.UpgradeInterruptedReason, controlplanev1.UpgradeReleaseNotAcceptedReason,
	controlplanev1.UpgradeRefusedReason,
}

// UpgradeFails reports whether an upgrade begins to fail by what was written.
func UpgradeFails(before, after *controlplanev1.OpenshiftAssistedControlPlane) bool {
	was, is := conditions.GetReason(before, controlplanev1.UpgradingCondition), conditions.GetReason(after, controlplanev1.UpgradingCondition)
	if was == "" || was == controlplanev1.UpgradeOtherClusterReason {
		return false // It may have been so before it was moved here, or before another cluster answered.
	}
	return !slices.Contains(upgradeFailures, was) && slices.Contains(upgradeFailures, is)
}

// upgradesTo is the release that a cluster is brought to.
func upgradesTo(cp *controlplanev1.OpenshiftAssistedControlPlane) string {
	if version := cp.Status.Upgrade.Version; version != "" {
		return version
	}
	return cp.Spec.DistributionVersion
}

// Resolution is what came of asking what a release image is, and how long it took; empty when nothing came of it by what was written.
func Resolution(before, after *controlplanev1.OpenshiftAssistedControlPlane) (result string, took time.Duration) {
	was, is := conditions.Get(before, controlplanev1.ReleaseResolvedCondition), conditions.Get(after, controlplanev1.ReleaseResolvedCondition)
	if was == nil || is == nil || was.Status == is.Status || was.Reason == controlplanev1.ReleaseResolutionSkippedReason {
		return "", 0
	}
	switch is.Status {
	case metav1.ConditionTrue:
		result = metrics.ResolveResolved
	case metav1.ConditionFalse:
		result = metrics.ResolveFailed
	default:
		return "", 0
	}
	return result, max(0, is.LastTransitionTime.Sub(was.LastTransitionTime.Time))
}

// InstallCompleted counts that a cluster is installed, which was recorded just now.
func InstallCompleted(cp *controlplanev1.OpenshiftAssistedControlPlane, install *hiveext.AgentClusterInstall, now time.Time) {
	installed(cp, metrics.InstallCompleted, "")
	if c := assisted.ClusterCondition(install, hiveext.ClusterCompletedCondition); c != nil && !c.LastTransitionTime.IsZero() &&
		c.Status == corev1.ConditionTrue {
		now = c.LastTransitionTime.Time
	}
	installSeconds.WithLabelValues(Topology(cp)).Observe(max(0, now.Sub(install.CreationTimestamp.Time).Seconds()))
}

// InstallRetried counts that another attempt begins, which was recorded just now.
func InstallRetried(cp *controlplanev1.OpenshiftAssistedControlPlane, reason string) {
	installed(cp, metrics.InstallRetried, reason)
}

// RemediationRecorded counts that an unhealthy Machine is replaced, which was recorded just now. retries is how many replacements have
// become unhealthy before.
func RemediationRecorded(retries int) {
	if retries > 0 {
		replacements.WithLabelValues(metrics.CauseUnhealthy, metrics.ReplacementFailed).Inc()
	}
	replacements.WithLabelValues(metrics.CauseUnhealthy, metrics.ReplacementStarted).Inc()
}

// OutdatedDeleted counts that an outdated Machine was deleted.
func OutdatedDeleted() {
	replacements.WithLabelValues(metrics.CauseOutdated, metrics.ReplacementStarted).Inc()
}
