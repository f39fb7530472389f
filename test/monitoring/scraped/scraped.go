// SPDX-License-Identifier: Apache-2.0

// Package scraped reads what a manager serves at /metrics.
package scraped

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are what was read at one time, by name.
type Metrics map[string]*dto.MetricFamily

// Parse reads Prometheus' text format.
func Parse(text []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse what was scraped: %w", err)
	}
	return families, nil
}

// Values are the values of a metric by those of labels, joined by commas: of a histogram how often it has counted, else the value. What
// differs in other labels is added up. Zeros are left out, so that who compares exactly finds all that has happened and nothing else.
func (m Metrics) Values(name string, labels ...string) map[string]float64 {
	values := map[string]float64{}
	family := m[name]
	for _, metric := range family.GetMetric() {
		key := make([]string, 0, len(labels))
		for _, label := range labels {
			key = append(key, valueOf(metric, label))
		}
		if value := value(family, metric); value != 0 {
			values[strings.Join(key, ",")] += value
		}
	}
	return values
}

// Value is the sum of all series of a metric; see Values.
func (m Metrics) Value(name string) float64 { return m.Values(name)[""] }

func valueOf(metric *dto.Metric, label string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == label {
			return pair.GetValue()
		}
	}
	return ""
}

func value(family *dto.MetricFamily, metric *dto.Metric) float64 {
	switch family.GetType() {
	case dto.MetricType_COUNTER:
		return metric.GetCounter().GetValue()
	case dto.MetricType_HISTOGRAM:
		return float64(metric.GetHistogram().GetSampleCount())
	default:
		return metric.GetGauge().GetValue()
	}
}

// Series is a series, as a query selects it.
type Series struct {
	// Name is that of the metric; a histogram's ends with _bucket, _count or _sum.
	Name string
	// Labels are as the manager serves them.
	Labels map[string]string
	// Value is the one that it had.
	Value float64
}

// String is the series as it is written in a query.
func (s Series) String() string {
	pairs := make([]string, 0, len(s.Labels))
	for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", label, s.Labels[label]))
	}
	return s.Name + "{" + strings.Join(pairs, ",") + "}"
}

// Series are all series, in their order.
func (m Metrics) Series() ([]Series, error) {
	var all []Series
	for _, name := range slices.Sorted(maps.Keys(m)) {
		vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, m[name])
		if err != nil {
			return nil, fmt.Errorf("read the series of %s: %w", name, err)
		}
		for _, sample := range vector {
			series := Series{Labels: map[string]string{}, Value: float64(sample.Value)}
			for label, value := range sample.Metric {
				series.Labels[string(label)] = string(value)
			}
			series.Name = series.Labels[model.MetricNameLabel]
			delete(series.Labels, model.MetricNameLabel)
			all = append(all, series)
		}
	}
	return all, nil
}
