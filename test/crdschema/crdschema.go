// SPDX-License-Identifier: Apache-2.0

// Package crdschema reads CustomResourceDefinitions from files and finds fields in their schemas. Fields are named by paths with dots; []
// at the end of a part stands for the items of a list, {} for the values of a map: spec.networks[].cidr.
package crdschema

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// ReadFolder returns the CustomResourceDefinitions in the *.yaml files of a folder, in the order of the file names.
func ReadFolder(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.yaml in %s", folder)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		found, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CustomResourceDefinitions: %w", err)
		}
		crds = append(crds, found...)
	}
	return crds, nil
}

// ReadKind returns the schema of the first version of a kind whose CustomResourceDefinition is in a folder.
func ReadKind(folder, kind string) (*apiextensionsv1.JSONSchemaProps, error) {
	crds, err := ReadFolder(folder)
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		if crd.Spec.Names.Kind == kind {
			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil
		}
	}
	return nil, fmt.Errorf("no %s in %s", kind, folder)
}

func readFile(file string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := utilyaml.ToUnstructured(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for i := range objects {
		if objects[i].GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Lookup returns the schema of a path, nil when there is none.
func Lookup(schema *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for part := range strings.SplitSeq(path, ".") {
		name := strings.TrimRight(part, "[]{}")
		property, ok := schema.Properties[name]
		if !ok {
			return nil
		}
		schema = descend(&property, strings.TrimPrefix(part, name))
		if schema == nil {
			return nil
		}
	}
	return schema
}

// descend follows [] to the items of lists and {} to the values of maps.
func descend(schema *apiextensionsv1.JSONSchemaProps, steps string) *apiextensionsv1.JSONSchemaProps {
	for ; steps != "" && schema != nil; steps = steps[2:] {
		switch {
		case steps[:2] == "[]" && schema.Items != nil:
			schema = schema.Items.Schema
		case steps[:2] == "{}" && schema.AdditionalProperties != nil:
			schema = schema.AdditionalProperties.Schema
		default:
			return nil
		}
	}
	return schema
}

// Leaves returns the paths below a path that have no fields of their own, sorted; the path itself when it has none.
func Leaves(schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	switch {
	case len(schema.Properties) > 0:
		var leaves []string
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			leaves = append(leaves, Leaves(&property, path+"."+name)...)
		}
		return leaves
	case schema.Items != nil && schema.Items.Schema != nil:
		return Leaves(schema.Items.Schema, path+"[]")
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return Leaves(schema.AdditionalProperties.Schema, path+"{}")
	default:
		return []string{path}
	}
}
