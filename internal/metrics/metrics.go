// SPDX-License-Identifier: Apache-2.0

// Package metrics says what the metrics of both managers are: their names, labels and values, where they come from and when they count.
// docs/reference/metrics.md is made from it. No label has the name or the namespace of an object: the number of series does not grow with
// the number of clusters.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Kind is what a metric is to Prometheus.
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge"
)

// Label is a label of a metric.
type Label struct {
	// Name is the label's name.
	Name string
	// Values are all values that it has. A label whose values are not listed has Pattern instead.
	Values []string
	// Pattern says which values there are when they cannot be listed, and what bounds their number.
	Pattern string
	// Constants is what the names of the constants begin with that are the values; their comments explain them.
	Constants string
}

// Definition is a metric.
type Definition struct {
	// Name is the name of the metric.
	Name string
	// Kind is what it is to Prometheus.
	Kind Kind
	// Help is its help text.
	Help string
	// Labels are its labels.
	Labels []Label
	// Buckets are those of a histogram, in seconds.
	Buckets []float64
	// Source is what it is made from: a condition, a field or an annotation.
	Source string
	// Counts says when a counter or a histogram counts, and when a gauge is read.
	Counts string
}

// LabelNames are the names of the labels.
func (d Definition) LabelNames() []string {
	names := make([]string, 0, len(d.Labels))
	for _, label := range d.Labels {
		names = append(names, label.Name)
	}
	return names
}

// NewCounter makes the counter.
func (d Definition) NewCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
}

// NewHistogram makes the histogram.
func (d Definition) NewHistogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.LabelNames())
}

// Desc describes the gauge to a collector.
func (d Definition) Desc() *prometheus.Desc {
	return prometheus.NewDesc(d.Name, d.Help, d.LabelNames(), nil)
}
