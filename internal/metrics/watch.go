// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// Changes lets transitions be counted that others write, beside what an event handler does with the events. A manager that starts is told
// of all objects as new ones, so that it counts nothing that it or another one has counted before; what changes while no manager runs is
// not counted.
type Changes struct {
	handler.EventHandler
	// Changed is called with an object as it was and as it is; it may be nil.
	Changed func(ctx context.Context, before, after client.Object)
	// Gone is called with the last state of an object that is gone; it may be nil.
	Gone func(ctx context.Context, last client.Object)
}

// Update implements handler.EventHandler.
func (c Changes) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if c.Changed != nil && e.ObjectOld != nil && e.ObjectNew != nil && e.ObjectOld.GetUID() == e.ObjectNew.GetUID() {
		c.Changed(ctx, e.ObjectOld, e.ObjectNew)
	}
	c.EventHandler.Update(ctx, e, q)
}

// Delete implements handler.EventHandler.
func (c Changes) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if c.Gone != nil && e.Object != nil {
		c.Gone(ctx, e.Object)
	}
	c.EventHandler.Delete(ctx, e, q)
}

// JoinedHere reports whether the host of a config was recognised by this management cluster. Of a Machine that was moved here, which has
// long been a Node, nothing is counted.
func JoinedHere(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return conditions.GetReason(config, bootstrapv1.HostRecognizedCondition) == bootstrapv1.HostRecognizedReason
}

// ScrapeTimeout bounds how long the gauges may take to be read from the cache.
const ScrapeTimeout = 10 * time.Second

// Scrape is one reading of gauges.
type Scrape struct {
	// Now is when it is.
	Now time.Time
	// Metrics takes what was read.
	Metrics chan<- prometheus.Metric
}

// Gauge sends the value of a gauge.
func (s Scrape) Gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s.Metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// Leads reports whether a manager has its Lease: gauges over all objects are reported by that one only, because it alone has caches that
// are filled and current for sure.
func Leads(elected <-chan struct{}) bool {
	select {
	case <-elected:
		return true
	default:
		return false
	}
}

// Ages are the ages of the oldest object, by what it is about.
type Ages map[string]float64

// Add counts an object that has been so since a time.
func (a Ages) Add(key string, now, since time.Time) {
	if since.IsZero() {
		return
	}
	a[key] = max(a[key], now.Sub(since).Seconds())
}
