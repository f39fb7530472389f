// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// told is a control plane with a condition that has a reason since some minutes after noon.
func told(conditionType string, status metav1.ConditionStatus, reason string, minutes int) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	cp.Spec.Replicas, cp.Spec.DistributionVersion = ptr.To[int32](3), "4.20.1"
	if reason != "" {
		cp.Status.Conditions = []metav1.Condition{{
			Type: conditionType, Status: status, Reason: reason,
			LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)),
		}}
	}
	return cp
}

// observed is how often a histogram has counted, and the sum.
func observed(g *WithT, h *prometheus.HistogramVec, labels ...string) (count uint64, sum float64) {
	observer, ok := h.WithLabelValues(labels...).(prometheus.Histogram)
	g.Expect(ok).To(BeTrue())
	var m dto.Metric
	g.Expect(observer.Write(&m)).To(Succeed())
	return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
}

func TestTopology(t *testing.T) {
	for want, change := range map[string]func(*controlplanev1.OpenshiftAssistedControlPlane){
		metrics.TopologyHighlyAvailable: func(*controlplanev1.OpenshiftAssistedControlPlane) {},
		metrics.TopologySingleNode:      func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = ptr.To[int32](1) },
		metrics.TopologyArbiter: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Install.TwoNode = controlplanev1.TwoNodeArbiter
		},
		metrics.TopologyFencing: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Install.TwoNode = controlplanev1.TwoNodeFencing
		},
	} {
		t.Run(want, func(t *testing.T) {
			cp := told("", "", "", 0)
			change(cp)
			NewWithT(t).Expect(Topology(cp)).To(Equal(want))
		})
	}
}

// TestInstallations: what is written once is counted once, however often the pass is repeated, also by a manager that has just started.
func TestInstallations(t *testing.T) {
	g := NewWithT(t)
	installs.Reset()
	of := func(result, reason string) float64 {
		return testutil.ToFloat64(installs.WithLabelValues(metrics.TopologyHighlyAvailable, "4.20", result, reason))
	}
	before, after := told("", "", "", 0), told("", "", "", 0)
	after.Status.Install.Phase = controlplanev1.InstallPhaseFailed
	Count(Written{Before: before, After: after, Cause: metrics.InstallReasonHost, Now: noon})
	for range 3 {
		Count(Written{Before: after, After: after, Cause: metrics.InstallReasonHost, Now: noon})
	}
	g.Expect(of(metrics.InstallFailed, metrics.InstallReasonHost)).To(Equal(1.0))
	InstallRetried(after, metrics.InstallReasonAutomatic)
	g.Expect(of(metrics.InstallRetried, metrics.InstallReasonAutomatic)).To(Equal(1.0))

	install := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
	install.Status.Conditions = []hivev1.ClusterInstallCondition{{
		Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(time.Hour)),
	}}
	count, sum := observed(g, installSeconds, metrics.TopologyHighlyAvailable)
	InstallCompleted(after, install, noon.Add(3*time.Hour))
	g.Expect(of(metrics.InstallCompleted, "")).To(Equal(1.0))
	later, more := observed(g, installSeconds, metrics.TopologyHighlyAvailable)
	g.Expect(later-count).To(Equal(uint64(1)), "the hour that assisted-service tells, and not the three until it was recorded")
	g.Expect(more - sum).To(Equal(time.Hour.Seconds()))
}

func TestUpgrades(t *testing.T) {
	upgrading := func(reason string) *controlplanev1.OpenshiftAssistedControlPlane {
		return told(controlplanev1.UpgradingCondition, metav1.ConditionTrue, reason, 0)
	}
	for name, test := range map[string]struct {
		before, after string
		want          bool
	}{
		"begins to fail":                    {controlplanev1.UpgradeStalledReason, controlplanev1.UpgradeFailingReason, true},
		"is not accepted":                   {controlplanev1.UpgradeStalledReason, controlplanev1.UpgradeReleaseNotAcceptedReason, true},
		"fails in another way":              {controlplanev1.UpgradeFailingReason, controlplanev1.UpgradeRefusedReason, false},
		"fails still":                       {controlplanev1.UpgradeFailingReason, controlplanev1.UpgradeFailingReason, false},
		"recovers":                          {controlplanev1.UpgradeFailingReason, controlplanev1.UpgradeStalledReason, false},
		"failed before it was moved here":   {"", controlplanev1.UpgradeFailingReason, false},
		"failed while another one answered": {controlplanev1.UpgradeOtherClusterReason, controlplanev1.UpgradeFailingReason, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(UpgradeFails(upgrading(test.before), upgrading(test.after))).To(Equal(test.want))
		})
	}
}

// TestUpgradeCompleted: an upgrade is as long as the history of the cluster says; the first installation, and a move, are none.
func TestUpgradeCompleted(t *testing.T) {
	g := NewWithT(t)
	upgrades.Reset()
	before, after := told("", "", "", 0), told("", "", "", 0)
	after.Status.DistributionVersion = "4.20.2"
	g.Expect(Upgraded(before, after)).To(BeEmpty())
	before.Status.DistributionVersion = "4.20.1"
	w := Written{Before: before, After: after, Now: noon.Add(5 * time.Hour), Version: &workload.ClusterVersion{History: []workload.PastRelease{
		{Release: workload.Release{Version: "4.20.2"}, Completed: true, Started: noon, Ended: noon.Add(2 * time.Hour)},
		{Release: workload.Release{Version: "4.20.1"}, Completed: true},
	}}}
	count, sum := observed(g, upgradeSeconds)
	Count(w)
	Count(Written{Before: after, After: after, Version: w.Version, Now: w.Now})
	later, more := observed(g, upgradeSeconds)
	g.Expect(later - count).To(Equal(uint64(1)))
	g.Expect(more - sum).To(Equal((2 * time.Hour).Seconds()))
	g.Expect(testutil.ToFloat64(upgrades.WithLabelValues("4.20", metrics.UpgradeCompleted))).To(Equal(1.0))

	w.Version = nil
	before.Status.Upgrade.Version, before.Status.Upgrade.StartedTime = "4.20.2", metav1.NewTime(noon.Add(time.Hour))
	begin, end := upgradeTimes(w, "4.20.2")
	g.Expect([]time.Time{begin, end}).To(Equal([]time.Time{noon.Add(time.Hour), w.Now}), "the cluster does not answer")
}

func TestResolution(t *testing.T) {
	resolved := func(status metav1.ConditionStatus, reason string, minutes int) *controlplanev1.OpenshiftAssistedControlPlane {
		return told(controlplanev1.ReleaseResolvedCondition, status, reason, minutes)
	}
	asked := resolved(metav1.ConditionUnknown, "Asked", 0)
	for name, test := range map[string]struct {
		before, after *controlplanev1.OpenshiftAssistedControlPlane
		result        string
		took          time.Duration
	}{
		"resolved":      {asked, resolved(metav1.ConditionTrue, "Resolved", 2), metrics.ResolveResolved, 2 * time.Minute},
		"failed":        {asked, resolved(metav1.ConditionFalse, "Failed", 3), metrics.ResolveFailed, 3 * time.Minute},
		"nothing new":   {asked, asked, "", 0},
		"not asked yet": {told("", "", "", 0), asked, "", 0},
		"the release needs no question any more": {
			resolved(metav1.ConditionUnknown, controlplanev1.ReleaseResolutionSkippedReason, 0), resolved(metav1.ConditionTrue, "Resolved", 1),
			"", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, took := Resolution(test.before, test.after)
			g := NewWithT(t)
			g.Expect(result).To(Equal(test.result))
			g.Expect(took).To(Equal(test.took))
		})
	}
}

// TestReplacementsFail: that a Machine is replaced whose predecessor was one already, means that the first replacement has failed.
func TestReplacementsFail(t *testing.T) {
	g := NewWithT(t)
	of := func(result string) float64 {
		return testutil.ToFloat64(replacements.WithLabelValues(metrics.CauseUnhealthy, result))
	}
	started, failed := of(metrics.ReplacementStarted), of(metrics.ReplacementFailed)
	RemediationRecorded(0)
	RemediationRecorded(1)
	g.Expect(of(metrics.ReplacementStarted) - started).To(Equal(2.0))
	g.Expect(of(metrics.ReplacementFailed) - failed).To(Equal(1.0))
}
