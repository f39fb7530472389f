// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/labels"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

var (
	upgradesStalled     = metrics.UpgradesStalled.Desc()
	etcdMembers         = metrics.EtcdMembers.Desc()
	workloadUnreachable = metrics.WorkloadUnreachable.Desc()
	unreachableOldest   = metrics.WorkloadUnreachableOldestSeconds.Desc()
	deletionAge         = metrics.DeletionAgeSeconds.Desc()
	credentialExpiry    = metrics.CredentialExpirySeconds.Desc()
)

// Gauges reads the gauges over all objects from the manager's cache when they are asked for. The cache has the kinds anyway; nothing is
// copied, and the API server is not asked.
type Gauges struct {
	// Cache is the manager's cache; the client would read Secrets from the API server.
	Cache client.Reader
	// Elected is closed once the manager acts; before, it reports nothing.
	Elected <-chan struct{}
	// WatchFilter restricts control planes to those with the label. The Secrets of Clusters have no such label.
	WatchFilter string
	// Now is the clock.
	Now func() time.Time
	// Log tells of gauges that cannot be read.
	Log logr.Logger
}

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		upgradesStalled, etcdMembers, workloadUnreachable, unreachableOldest, deletionAge, credentialExpiry,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector. A gauge that cannot be read has no series: an error would cost all metrics of the manager.
func (g *Gauges) Collect(out chan<- prometheus.Metric) {
	if !metrics.Leads(g.Elected) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), metrics.ScrapeTimeout)
	defer cancel()
	scrape := metrics.Scrape{Now: g.Now(), Metrics: out}
	if err := errors.Join(g.controlPlanes(ctx, scrape), g.credentials(ctx, scrape)); err != nil {
		g.Log.Error(err, "Cannot read metrics from the cache")
	}
}

func (g *Gauges) controlPlanes(ctx context.Context, s metrics.Scrape) error {
	list := &controlplanev1.OpenshiftAssistedControlPlaneList{}
	if err := g.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OpenshiftAssistedControlPlanes: %w", err)
	}
	stalled, unreachable := 0, 0
	members, deleting, silent := map[string]int{}, metrics.Ages{}, metrics.Ages{}
	for i := range list.Items {
		cp := &list.Items[i]
		if g.WatchFilter != "" && !labels.HasWatchLabel(cp, g.WatchFilter) {
			continue
		}
		begin(cp)
		switch conditions.GetReason(cp, controlplanev1.UpgradingCondition) {
		case controlplanev1.UpgradeStalledReason, controlplanev1.UpgradeFailingReason:
			stalled++
		}
		if since, silence := silentSince(cp); silence {
			unreachable++
			silent.Add("", s.Now, since)
		}
		for state, number := range Members(cp) {
			members[state] += number
		}
		if at := cp.DeletionTimestamp; at != nil {
			deleting.Add(deletionStep(cp), s.Now, at.Time)
		}
	}
	s.Gauge(upgradesStalled, float64(stalled))
	s.Gauge(workloadUnreachable, float64(unreachable))
	s.Gauge(unreachableOldest, silent[""])
	for _, state := range metrics.MemberStates {
		s.Gauge(etcdMembers, float64(members[state]), state)
	}
	for _, step := range metrics.ControlPlaneSteps {
		s.Gauge(deletionAge, deleting[step], metrics.KindControlPlane, step)
	}
	return nil
}

// silentSince is since when the API of a cluster has not answered, at the end of the grace period; false when it answers. Available alone
// does not tell: it stays False, and keeps its time, when a cluster that was not available stops answering. The conditions that sum up the
// operators become Unknown then, so the latest time counts.
func silentSince(cp *controlplanev1.OpenshiftAssistedControlPlane) (since time.Time, silence bool) {
	if conditions.GetReason(cp, controlplanev1.AvailableCondition) != controlplanev1.ConnectionDownReason {
		return time.Time{}, false
	}
	for _, told := range []struct{ condition, reason string }{
		{controlplanev1.AvailableCondition, controlplanev1.ConnectionDownReason},
		{controlplanev1.EtcdClusterHealthyCondition, controlplanev1.EtcdClusterConnectionDownReason},
		{controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.ControlPlaneComponentsConnectionDownReason},
	} {
		c := conditions.Get(cp, told.condition)
		if c != nil && c.Reason == told.reason && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since, true
}

// Members counts the members of a cluster's etcd by state. Members that do not serve are lost when there are more members than Machines
// that can have one: the host of one is gone, and nobody has removed it from etcd.
func Members(cp *controlplanev1.OpenshiftAssistedControlPlane) map[string]int {
	all, healthy := int(ptr.Deref(cp.Status.Etcd.Members, 0)), int(ptr.Deref(cp.Status.Etcd.HealthyMembers, 0))
	hosts := int(ptr.Deref(cp.Status.Replicas, 0))
	if cp.Spec.Install.TwoNode == controlplanev1.TwoNodeArbiter {
		hosts++
	}
	lost := max(0, min(all-hosts, all-healthy))
	return map[string]int{metrics.MemberHealthy: healthy, metrics.MemberUnhealthy: max(0, all-healthy-lost), metrics.MemberLost: lost}
}

// steps are the steps of a control plane's deletion by the reason of its condition Deleting.
var steps = map[string]string{
	controlplanev1.WaitingForWorkersDeletionReason:  metrics.StepWorkers,
	controlplanev1.WaitingForOrphaningReason:        metrics.StepOrphaning,
	controlplanev1.WaitingForMachineDeletionReason:  metrics.StepMachines,
	controlplanev1.WaitingForOrphanedMachinesReason: metrics.StepOrphans,
	controlplanev1.WaitingForInstallDeletionReason:  metrics.StepInstall,
}

func deletionStep(cp *controlplanev1.OpenshiftAssistedControlPlane) string {
	if step, known := steps[conditions.GetReason(cp, controlplanev1.DeletingCondition)]; known {
		return step
	}
	return metrics.StepOther
}

// credentials reads when the first token ends. A token that nobody renews any more goes with its control plane, and so does its Secret.
func (g *Gauges) credentials(ctx context.Context, s metrics.Scrape) error {
	list := &corev1.SecretList{}
	if err := g.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Secrets of Clusters: %w", err)
	}
	var first time.Time
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.Annotations[controlplanev1.KubeconfigTokenAnnotation] == "" || !secret.DeletionTimestamp.IsZero() {
			continue
		}
		if ends := view.LifeOfTokenIn(secret).Expires; !ends.IsZero() && (first.IsZero() || ends.Before(first)) {
			first = ends
		}
	}
	if !first.IsZero() {
		s.Gauge(credentialExpiry, first.Sub(s.Now).Seconds())
	}
	return nil
}
