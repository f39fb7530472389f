// SPDX-License-Identifier: Apache-2.0

package customresourcestate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Sample is one line of what kube-state-metrics serves.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// String is the sample as it is served, with sorted labels.
func (s Sample) String() string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, fmt.Sprintf("%s=%q", name, s.Labels[name]))
	}
	return fmt.Sprintf("%s{%s} %s", s.Name, strings.Join(labels, ","), strconv.FormatFloat(s.Value, 'f', -1, 64))
}

// Evaluate returns the samples of an object, none when the configuration does not have its kind. What kube-state-metrics only writes into
// its log is an error.
func (c *Config) Evaluate(object *unstructured.Unstructured) ([]Sample, error) {
	var samples []Sample
	var problems []error
	for i := range c.Spec.Resources {
		resource := &c.Spec.Resources[i]
		gvk := resource.GroupVersionKind
		if found := object.GroupVersionKind(); found.Group != gvk.Group || found.Version != gvk.Version || found.Kind != gvk.Kind {
			continue
		}
		base := map[string]string{
			"customresource_group": gvk.Group, "customresource_version": gvk.Version, "customresource_kind": gvk.Kind,
		}
		addLabels(base, object.Object, resource.LabelsFromPath)
		for j := range resource.Metrics {
			found, err := resource.Metrics[j].evaluate(object.Object)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", resource.Name(&resource.Metrics[j]), err))
			}
			samples = append(samples, named(found, resource.Name(&resource.Metrics[j]), base)...)
		}
	}
	return samples, errors.Join(problems...)
}

// named gives samples their name, and the labels of their resource that they do not have.
func named(samples []Sample, name string, base map[string]string) []Sample {
	for i := range samples {
		own := samples[i].Labels
		samples[i].Name, samples[i].Labels = name, maps.Clone(base)
		maps.Copy(samples[i].Labels, own)
	}
	return samples
}

func (m *Metric) evaluate(object map[string]any) ([]Sample, error) {
	each, err := m.each()
	if err != nil {
		return nil, err
	}
	found := get(object, each.Path)
	items, isList := found.([]any)
	if !isList {
		items = []any{found}
	}
	var samples []Sample
	for _, item := range items {
		var more []Sample
		switch m.Each.Type {
		case "Gauge":
			more, err = each.gauge(item)
		case "StateSet":
			more = each.stateSet(item)
		default:
			more = each.info(item)
		}
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	return samples, nil
}

// info is 1, with labels, or nothing.
func (e *Each) info(item any) []Sample {
	labels := map[string]string{}
	if item != nil {
		addLabels(labels, item, e.LabelsFromPath)
	}
	if len(labels) == 0 {
		return nil
	}
	return []Sample{{Labels: labels, Value: 1}}
}

// stateSet is one sample for each value of the list, and nothing when there is no value.
func (e *Each) stateSet(item any) []Sample {
	value, ok := get(item, e.ValueFrom).(string)
	if !ok {
		return nil
	}
	var samples []Sample
	for _, entry := range e.List {
		sample := Sample{Labels: map[string]string{e.LabelName: entry}}
		if entry == value {
			sample.Value = 1
		}
		addLabels(sample.Labels, item, e.LabelsFromPath)
		samples = append(samples, sample)
	}
	return samples
}

func (e *Each) gauge(item any) ([]Sample, error) {
	if _, isMap := item.(map[string]any); isMap && len(e.ValueFrom) != 1 {
		return nil, fmt.Errorf("%v is an object, of which a gauge needs one field", e.Path)
	}
	found := get(item, e.ValueFrom)
	if found == nil && !e.NilIsZero {
		return nil, nil
	}
	value, err := number(found)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", append(slices.Clone(e.Path), e.ValueFrom...), err)
	}
	sample := Sample{Labels: map[string]string{}, Value: value}
	addLabels(sample.Labels, item, e.LabelsFromPath)
	return []Sample{sample}, nil
}

// number is the value of a field as a gauge has it.
func number(value any) (float64, error) {
	switch v := value.(type) {
	case nil:
		return 0, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return 0, fmt.Errorf("%q is neither a number nor a time", v)
		}
		return float64(at.Unix()), nil
	default:
		return 0, fmt.Errorf("%T is no number", value)
	}
}

func addLabels(labels map[string]string, object any, paths map[string][]string) {
	for label, path := range paths {
		if value := get(object, path); value != nil {
			labels[label] = fmt.Sprint(value)
		}
	}
}

// get follows a path through objects; nil when it leads nowhere.
func get(object any, path []string) any {
	for _, part := range path {
		fields, ok := object.(map[string]any)
		if !ok {
			return nil
		}
		object = fields[part]
	}
	return object
}
