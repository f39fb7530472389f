// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The metrics are those of Cluster API's ClusterCache, which registers them as soon as it is imported.
var (
	healthCheck = registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "capi_cluster_cache_healthcheck",
		Help: "Result of the last clustercache healthcheck for a cluster.",
	}, []string{"cluster_name", "cluster_namespace"}))
	healthChecks = registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capi_cluster_cache_healthchecks_total",
		Help: "Results of all clustercache healthchecks.",
	}, []string{"cluster_name", "cluster_namespace", "status"}))
	connectionUp = registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "capi_cluster_cache_connection_up",
		Help: "Whether the connection to the cluster is up.",
	}, []string{"cluster_name", "cluster_namespace"}))
)

// registered is the metric of this name that is registered already, or else this one.
func registered[metric prometheus.Collector](m metric) metric {
	var there prometheus.AlreadyRegisteredError
	if errors.As(metrics.Registry.Register(m), &there) {
		if existing, ok := there.ExistingCollector.(metric); ok {
			return existing
		}
	}
	return m
}

func forgetMetrics(cluster client.ObjectKey) {
	healthCheck.DeleteLabelValues(cluster.Name, cluster.Namespace)
	connectionUp.DeleteLabelValues(cluster.Name, cluster.Namespace)
	for _, status := range []string{"success", "error"} {
		healthChecks.DeleteLabelValues(cluster.Name, cluster.Namespace, status)
	}
}
