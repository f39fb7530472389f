// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capi-openshift/agent-providers/internal/version"
)

// BuildInfoMetric is a gauge that is always 1; its labels are the version, the revision and the version of Go that the manager was built
// with.
const BuildInfoMetric = "openshift_assisted_build_info"

// Its labels never change, so there is nothing to compute when it is scraped.
func init() {
	metrics.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: BuildInfoMetric, Help: "What the manager was built from and with; always 1.",
		ConstLabels: prometheus.Labels{"version": version.Get(), "revision": version.Revision(), "go": runtime.Version()},
	}, func() float64 { return 1 }))
}
