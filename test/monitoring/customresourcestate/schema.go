// SPDX-License-Identifier: Apache-2.0

package customresourcestate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/test/crdschema"
)

// metadata are the fields of metadata that a configuration may read: the schema of a CRD does not have them. Those that end with {} are
// maps of strings, those with [] lists of objects with the fields after it.
var metadata = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.creationTimestamp", "metadata.deletionTimestamp",
	"metadata.labels{}", "metadata.annotations{}", "metadata.ownerReferences[]",
	"metadata.ownerReferences[].controller", "metadata.ownerReferences[].kind", "metadata.ownerReferences[].name",
	"metadata.ownerReferences[].uid",
}

// CheckSchema returns what is wrong with a kind's paths and lists, by the schema of its CRD.
func (r *Resource) CheckSchema(schema *apiextensionsv1.JSONSchemaProps) error {
	var problems []error
	report := func(metric string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s_%s: %w", r.MetricNamePrefix, metric, err))
		}
	}
	for label, path := range r.LabelsFromPath {
		_, err := lookup(schema, path)
		report("*{"+label+"}", err)
	}
	for i := range r.Metrics {
		metric := &r.Metrics[i]
		each, err := metric.each()
		if err != nil {
			report(metric.Name, err)
			continue
		}
		report(metric.Name, each.checkSchema(schema))
	}
	return errors.Join(problems...)
}

func (e *Each) checkSchema(schema *apiextensionsv1.JSONSchemaProps) error {
	var problems []error
	base, err := lookup(schema, e.Path)
	if err != nil {
		return err
	}
	for label, path := range e.LabelsFromPath {
		if _, err := lookup(schema, append(slices.Clone(base), path...)); err != nil {
			problems = append(problems, fmt.Errorf("label %s: %w", label, err))
		}
	}
	value, err := lookup(schema, append(slices.Clone(base), e.ValueFrom...))
	problems = append(problems, err)
	if field := crdschema.Lookup(schema, strings.Join(value, ".")); err == nil && len(e.List) > 0 && field != nil {
		problems = append(problems, e.checkList(field))
	}
	return errors.Join(problems...)
}

// checkList compares the values of a state set with those that the schema allows.
func (e *Each) checkList(field *apiextensionsv1.JSONSchemaProps) error {
	var allowed []string
	for _, value := range field.Enum {
		allowed = append(allowed, strings.Trim(string(value.Raw), `"`))
	}
	if len(allowed) == 0 {
		return nil
	}
	listed := slices.Clone(e.List)
	slices.Sort(allowed)
	slices.Sort(listed)
	if !slices.Equal(allowed, listed) {
		return fmt.Errorf("the list is %v, the field may be %v", listed, allowed)
	}
	return nil
}

// lookup returns a path with [] after each part that is a list, or an error when the kind does not have it.
func lookup(schema *apiextensionsv1.JSONSchemaProps, path []string) ([]string, error) {
	if len(path) > 0 && path[0] == "metadata" {
		return lookupMetadata(path)
	}
	var found []string
	for _, part := range path {
		found = append(found, part)
		field := crdschema.Lookup(schema, strings.Join(found, "."))
		if field == nil {
			return nil, fmt.Errorf("there is no field %s", strings.Join(found, "."))
		}
		if field.Type == "array" {
			found[len(found)-1] += "[]"
		}
	}
	return found, nil
}

func lookupMetadata(path []string) ([]string, error) {
	joined := strings.Join(path, ".")
	for _, known := range metadata {
		switch {
		case joined == known:
			return path, nil
		case joined+"[]" == known:
			return append(slices.Clone(path[:len(path)-1]), path[len(path)-1]+"[]"), nil
		case strings.HasSuffix(known, "{}") && len(path) == 3 && path[0]+"."+path[1]+"{}" == known:
			return path, nil
		}
	}
	return nil, fmt.Errorf("there is no field %s", joined)
}
