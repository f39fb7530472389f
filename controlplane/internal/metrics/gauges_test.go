// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// cached is a cache that has these objects.
type cached struct {
	client.Reader
	controlPlanes []controlplanev1.OpenshiftAssistedControlPlane
	secrets       []corev1.Secret
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *controlplanev1.OpenshiftAssistedControlPlaneList:
		l.Items = c.controlPlanes
	case *corev1.SecretList:
		l.Items = c.secrets
	}
	return nil
}

// token is a kubeconfig whose token ends some hours after noon.
func token(hours int) corev1.Secret {
	ends := noon.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339)
	return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		controlplanev1.KubeconfigTokenAnnotation: fmt.Sprintf(`{"expires":%q}`, ends),
	}}}
}

func gaugesOf(c cached) *Gauges {
	leads := make(chan struct{})
	close(leads)
	return &Gauges{Cache: c, Elected: leads, Now: func() time.Time { return noon }, Log: logr.Discard()}
}

// collected are the metrics of a collector by name.
func collected(g *WithT, c prometheus.Collector) map[string]*dto.MetricFamily {
	registry := prometheus.NewRegistry()
	g.Expect(registry.Register(c)).To(Succeed())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]*dto.MetricFamily{}
	for _, family := range families {
		found[family.GetName()] = family
	}
	return found
}

// TestSilentSince: a cluster that was not available for long before its API stopped answering has been silent since then.
func TestSilentSince(t *testing.T) {
	g := NewWithT(t)
	cp := told(controlplanev1.AvailableCondition, metav1.ConditionFalse, controlplanev1.ConnectionDownReason, -2880)
	unknown := told(controlplanev1.EtcdClusterHealthyCondition, metav1.ConditionUnknown, controlplanev1.EtcdClusterConnectionDownReason, -1)
	cp.Status.Conditions = append(cp.Status.Conditions, unknown.Status.Conditions...)
	since, silent := silentSince(cp)
	g.Expect(silent).To(BeTrue())
	g.Expect(since).To(BeTemporally("==", noon.Add(-time.Minute)))
	_, silent = silentSince(unknown)
	g.Expect(silent).To(BeFalse(), "the grace period is not over")
}

func TestGauges(t *testing.T) {
	g := NewWithT(t)
	stalled := told(controlplanev1.UpgradingCondition, metav1.ConditionTrue, controlplanev1.UpgradeStalledReason, 0)
	silent := told(controlplanev1.AvailableCondition, metav1.ConditionUnknown, controlplanev1.ConnectionDownReason, -20)
	silent.Status.Replicas = ptr.To[int32](2)
	silent.Status.Etcd.Members, silent.Status.Etcd.HealthyMembers = ptr.To[int32](3), ptr.To[int32](2)
	going := told(controlplanev1.DeletingCondition, metav1.ConditionTrue, controlplanev1.WaitingForMachineDeletionReason, 0)
	going.DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	collector := gaugesOf(cached{
		controlPlanes: []controlplanev1.OpenshiftAssistedControlPlane{*stalled, *silent, *going},
		secrets:       []corev1.Secret{{}, token(30), token(6)},
	})
	g.Expect(testutil.CollectAndCompare(collector, strings.NewReader(`
# HELP openshift_assisted_credential_expiry_seconds `+metrics.CredentialExpirySeconds.Help+`
# TYPE openshift_assisted_credential_expiry_seconds gauge
openshift_assisted_credential_expiry_seconds 21600
# HELP openshift_assisted_etcd_members `+metrics.EtcdMembers.Help+`
# TYPE openshift_assisted_etcd_members gauge
openshift_assisted_etcd_members{state="healthy"} 2
openshift_assisted_etcd_members{state="lost"} 1
openshift_assisted_etcd_members{state="unhealthy"} 0
# HELP openshift_assisted_upgrades_stalled `+metrics.UpgradesStalled.Help+`
# TYPE openshift_assisted_upgrades_stalled gauge
openshift_assisted_upgrades_stalled 1
# HELP openshift_assisted_workload_unreachable `+metrics.WorkloadUnreachable.Help+`
# TYPE openshift_assisted_workload_unreachable gauge
openshift_assisted_workload_unreachable 1
# HELP openshift_assisted_workload_unreachable_oldest_seconds `+metrics.WorkloadUnreachableOldestSeconds.Help+`
# TYPE openshift_assisted_workload_unreachable_oldest_seconds gauge
openshift_assisted_workload_unreachable_oldest_seconds 1200
`), metrics.CredentialExpirySeconds.Name, metrics.EtcdMembers.Name, metrics.UpgradesStalled.Name, metrics.WorkloadUnreachable.Name,
		metrics.WorkloadUnreachableOldestSeconds.Name,
	)).To(Succeed())
	ages := map[string]float64{}
	for _, series := range collected(g, collector)[metrics.DeletionAgeSeconds.Name].GetMetric() {
		ages[series.GetLabel()[1].GetValue()] = series.GetGauge().GetValue()
	}
	g.Expect(ages).To(HaveKeyWithValue(metrics.StepMachines, time.Hour.Seconds()))
	g.Expect(ages).To(HaveKeyWithValue(metrics.StepInstall, 0.0))
}

// TestCountersBeginWithZero: the first installation and the first upgrade of a release are an increase, because their series are there
// before, with 0; and what was counted stays.
func TestCountersBeginWithZero(t *testing.T) {
	g := NewWithT(t)
	installs.Reset()
	upgrades.Reset()
	upgradeSeconds.Reset()
	cp := told("", "", "", 0)
	collector := gaugesOf(cached{controlPlanes: []controlplanev1.OpenshiftAssistedControlPlane{*cp}})
	installed(cp, metrics.InstallFailed, metrics.InstallReasonHost)
	for range 2 {
		testutil.CollectAndCount(collector)
	}
	g.Expect(testutil.CollectAndCount(installs)).To(Equal(7))
	g.Expect(testutil.CollectAndCount(upgrades)).To(Equal(2))
	g.Expect(testutil.CollectAndCount(upgradeSeconds)).To(Equal(1))
	topology := metrics.TopologyHighlyAvailable
	g.Expect(testutil.ToFloat64(installs.WithLabelValues(topology, "4.20", metrics.InstallFailed, metrics.InstallReasonHost))).To(Equal(1.0))
	g.Expect(testutil.ToFloat64(installs.WithLabelValues(topology, "4.20", metrics.InstallCompleted, ""))).To(BeZero())
	g.Expect(testutil.ToFloat64(upgrades.WithLabelValues("4.20", metrics.UpgradeCompleted))).To(BeZero())
}

// TestOnlyTheLeaderReports: a replica that waits for the Lease has no gauges, so that nobody adds them up twice.
func TestOnlyTheLeaderReports(t *testing.T) {
	collector := gaugesOf(cached{})
	collector.Elected = make(chan struct{})
	NewWithT(t).Expect(testutil.CollectAndCount(collector)).To(BeZero())
}

// TestMembers: a member that does not serve is lost when no Machine can have it any more.
func TestMembers(t *testing.T) {
	for name, test := range map[string]struct {
		members, healthy, replicas int32
		arbiter                    bool
		want                       []int
	}{
		"all serve":                   {3, 3, 3, false, []int{3, 0, 0}},
		"one restarts":                {3, 2, 3, false, []int{2, 1, 0}},
		"the host of one is gone":     {3, 2, 2, false, []int{2, 0, 1}},
		"one is gone, one restarts":   {5, 3, 4, false, []int{3, 1, 1}},
		"one serves without Machine":  {4, 4, 3, false, []int{4, 0, 0}},
		"a Machine without a member":  {3, 3, 4, false, []int{3, 0, 0}},
		"the arbiter has one as well": {3, 2, 2, true, []int{2, 1, 0}},
		"not installed yet":           {0, 0, 3, false, []int{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			cp := told("", "", "", 0)
			cp.Status.Etcd.Members, cp.Status.Etcd.HealthyMembers, cp.Status.Replicas = &test.members, &test.healthy, &test.replicas
			if test.arbiter {
				cp.Spec.Install.TwoNode = controlplanev1.TwoNodeArbiter
			}
			found := Members(cp)
			NewWithT(t).Expect([]int{
				found[metrics.MemberHealthy], found[metrics.MemberUnhealthy], found[metrics.MemberLost],
			}).To(Equal(test.want))
		})
	}
}

// TestMembersOverTime: while the host of one cluster leaves, the members of both add up at each time, and nothing of before is left.
func TestMembersOverTime(t *testing.T) {
	g := NewWithT(t)
	collector := gaugesOf(cached{})
	for _, step := range []struct {
		members, healthy, replicas int32
		want                       map[string]float64
	}{
		{4, 4, 4, map[string]float64{metrics.MemberHealthy: 7, metrics.MemberUnhealthy: 0, metrics.MemberLost: 0}},
		{4, 4, 3, map[string]float64{metrics.MemberHealthy: 7, metrics.MemberUnhealthy: 0, metrics.MemberLost: 0}},
		{4, 3, 4, map[string]float64{metrics.MemberHealthy: 6, metrics.MemberUnhealthy: 1, metrics.MemberLost: 0}},
		{4, 3, 3, map[string]float64{metrics.MemberHealthy: 6, metrics.MemberUnhealthy: 0, metrics.MemberLost: 1}},
		{3, 3, 3, map[string]float64{metrics.MemberHealthy: 6, metrics.MemberUnhealthy: 0, metrics.MemberLost: 0}},
	} {
		changing, steady := told("", "", "", 0), told("", "", "", 0)
		changing.Status.Etcd.Members, changing.Status.Etcd.HealthyMembers, changing.Status.Replicas = &step.members, &step.healthy, &step.replicas
		steady.Status.Etcd.Members, steady.Status.Etcd.HealthyMembers = ptr.To[int32](3), ptr.To[int32](3)
		steady.Status.Replicas = ptr.To[int32](3)
		collector.Cache = cached{controlPlanes: []controlplanev1.OpenshiftAssistedControlPlane{*changing, *steady}}
		found := map[string]float64{}
		for _, series := range collected(g, collector)[metrics.EtcdMembers.Name].GetMetric() {
			found[series.GetLabel()[0].GetValue()] = series.GetGauge().GetValue()
		}
		g.Expect(found).To(Equal(step.want))
	}
}

// TestSeriesOfManyClusters: 500 clusters have no more series than one.
func TestSeriesOfManyClusters(t *testing.T) {
	g := NewWithT(t)
	c := cached{}
	for i := range 500 {
		cp := told(controlplanev1.UpgradingCondition, metav1.ConditionTrue, controlplanev1.UpgradeFailingReason, i)
		cp.Namespace, cp.Name = fmt.Sprintf("ns-%d", i), "demo"
		c.controlPlanes, c.secrets = append(c.controlPlanes, *cp), append(c.secrets, token(i+1))
	}
	one := cached{controlPlanes: c.controlPlanes[:1], secrets: c.secrets[:1]}
	g.Expect(testutil.CollectAndCount(gaugesOf(c))).To(Equal(testutil.CollectAndCount(gaugesOf(one))))
	failing := collected(g, gaugesOf(c))[metrics.UpgradesStalled.Name].GetMetric()[0]
	g.Expect(failing.GetGauge().GetValue()).To(Equal(500.0))
}
