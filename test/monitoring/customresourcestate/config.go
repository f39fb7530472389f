// SPDX-License-Identifier: Apache-2.0

// Package customresourcestate evaluates the part of kube-state-metrics' CustomResourceState configuration that config/metrics uses, as
// kube-state-metrics 2.17 does, whose Go module is not on the module proxy. What it does not know is an error, never left out.
package customresourcestate

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Config is a CustomResourceStateMetrics document.
type Config struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []Resource `json:"resources"`
	} `json:"spec"`
}

// Resource has the metrics of a kind.
type Resource struct {
	GroupVersionKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"groupVersionKind"`
	MetricNamePrefix string              `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string `json:"labelsFromPath"`
	Metrics          []Metric            `json:"metrics"`
}

// Metric is one metric of a kind.
type Metric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each struct {
		Type     string `json:"type"`
		Gauge    *Each  `json:"gauge,omitempty"`
		Info     *Each  `json:"info,omitempty"`
		StateSet *Each  `json:"stateSet,omitempty"`
	} `json:"each"`
}

// Each says where the values of a metric are, and their labels.
type Each struct {
	Path           []string            `json:"path,omitempty"`
	LabelsFromPath map[string][]string `json:"labelsFromPath,omitempty"`
	// ValueFrom is relative to Path, of gauges and state sets.
	ValueFrom []string `json:"valueFrom,omitempty"`
	// NilIsZero is of gauges.
	NilIsZero bool `json:"nilIsZero,omitempty"`
	// LabelName and List are of state sets.
	LabelName string   `json:"labelName,omitempty"`
	List      []string `json:"list,omitempty"`
}

// Read returns the configuration in a file. A field that this package does not know is an error.
func Read(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of kube-state-metrics: %w", err)
	}
	return Parse(data)
}

// Parse returns the configuration in a document.
func Parse(data []byte) (*Config, error) {
	config := &Config{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, fmt.Errorf("parse the configuration of kube-state-metrics: %w", err)
	}
	if config.Kind != "CustomResourceStateMetrics" {
		return nil, fmt.Errorf("the kind is %q", config.Kind)
	}
	for i := range config.Spec.Resources {
		resource := &config.Spec.Resources[i]
		for j := range resource.Metrics {
			if _, err := resource.Metrics[j].each(); err != nil {
				return nil, fmt.Errorf("%s: %w", resource.Name(&resource.Metrics[j]), err)
			}
		}
	}
	return config, nil
}

// Name is the name of a metric of the kind.
func (r *Resource) Name(metric *Metric) string { return r.MetricNamePrefix + "_" + metric.Name }

// LabelPaths are where the labels of a metric come from.
func (m *Metric) LabelPaths() []map[string][]string {
	var all []map[string][]string
	for _, part := range []*Each{m.Each.Gauge, m.Each.Info, m.Each.StateSet} {
		if part != nil {
			all = append(all, part.LabelsFromPath)
		}
	}
	return all
}

// each returns the part that the type asks for.
func (m *Metric) each() (*Each, error) {
	parts := map[string]*Each{"Gauge": m.Each.Gauge, "Info": m.Each.Info, "StateSet": m.Each.StateSet}
	part := parts[m.Each.Type]
	if part == nil {
		return nil, fmt.Errorf("type %q has no part of its own", m.Each.Type)
	}
	for name, other := range parts {
		if name != m.Each.Type && other != nil {
			return nil, fmt.Errorf("type %s has a part for %s", m.Each.Type, name)
		}
	}
	return part, part.check(m.Each.Type)
}

// check refuses what has no meaning for the type, and what this package does not evaluate.
func (e *Each) check(kind string) error {
	set := kind == "StateSet"
	switch {
	case set != (e.LabelName != "") || set != (len(e.List) > 0):
		return fmt.Errorf("labelName and list belong to a StateSet, and it needs them")
	case kind != "Gauge" && e.NilIsZero:
		return fmt.Errorf("nilIsZero belongs to a Gauge")
	case kind == "Info" && len(e.ValueFrom) > 0:
		return fmt.Errorf("an Info has no valueFrom")
	}
	for _, path := range append([][]string{e.Path, e.ValueFrom}, values(e.LabelsFromPath)...) {
		for _, part := range path {
			if strings.HasPrefix(part, "[") {
				return fmt.Errorf("look-ups in lists such as %s are not evaluated", part)
			}
		}
	}
	for label := range e.LabelsFromPath {
		if strings.Contains(label, "*") {
			return fmt.Errorf("labels such as %s are not evaluated", label)
		}
	}
	return nil
}

func values(paths map[string][]string) [][]string {
	var all [][]string
	for _, path := range paths {
		all = append(all, path)
	}
	return all
}
