// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// newField is a field that a service's releases have and the newest Go module of its API has not (DESIGN D17). Without it
// the apiserver drops what the service writes there.
type newField struct {
	crd    string
	parent string // the object that has the field, as a path such as spec.provisionRequirements
	name   string
	schema apiextensionsv1.JSONSchemaProps
}

var newFields = []newField{
	// NTP servers that replace those of the network, and the wait of minimal ISOs for their interfaces (ASSISTED 1.1).
	{crd: "infraenvs.agent-install.openshift.io", parent: "spec", name: "ntpSources", schema: apiextensionsv1.JSONSchemaProps{
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
	}},
	{
		crd:    "infraenvs.agent-install.openshift.io",
		parent: "spec",
		name:   "networkDiscoveryDelaySeconds",
		schema: apiextensionsv1.JSONSchemaProps{
			Type: "integer", Format: "int64", Minimum: ptr.To(0.0),
		},
	},
	// Host or AddToExistingClusterHost (ASSISTED 1.2).
	{crd: "agents.agent-install.openshift.io", parent: "status", name: "kind", schema: apiextensionsv1.JSONSchemaProps{Type: "string"}},
	// Time servers of the installed hosts, since August 2026 (ASSISTED 1.3).
	{crd: crdAgentClusterInstalls, parent: "spec", name: "ntpSources", schema: apiextensionsv1.JSONSchemaProps{
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
	}},
	// Clusters of two control-plane hosts (ASSISTED 1.2, 1.3).
	{
		crd: "agents.agent-install.openshift.io", parent: "spec", name: "fencingCredentialsSecretRef",
		schema: apiextensionsv1.JSONSchemaProps{Type: "string"},
	},
	{crd: crdAgentClusterInstalls, parent: "spec.provisionRequirements", name: "arbiterAgents", schema: apiextensionsv1.JSONSchemaProps{
		Type: "integer", Minimum: ptr.To(0.0),
	}},
	{crd: crdAgentClusterInstalls, parent: "spec", name: "arbiter", schema: apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name": {Type: "string"},
			"hyperthreading": {
				Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`""`)}, {Raw: []byte(`"Enabled"`)}, {Raw: []byte(`"Disabled"`)}},
			},
		},
	}},
}

const crdAgentClusterInstalls = "agentclusterinstalls.extensions.hive.openshift.io"

// newValues are values that a service's releases take and the newest Go module of its API does not.
var newValues = []struct {
	crd    string
	path   []string
	values []string
}{
	{crdAgentClusterInstalls, []string{"spec", "networking", "networkType"}, []string{"CiscoACI", "Cilium", "Calico", "None"}},
	{
		crdAgentClusterInstalls, []string{"spec", "diskEncryption", "enableOn"},
		[]string{"arbiters", "masters,arbiters", "masters,workers", "arbiters,workers"},
	},
}

// addNewValues adds the values to every version of their CRDs.
func addNewValues(crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, values := range newValues {
		index := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == values.crd })
		if index < 0 {
			continue
		}
		for _, version := range crds[index].Spec.Versions {
			if err := addValues(version.Schema.OpenAPIV3Schema, values.path, values.values); err != nil {
				return fmt.Errorf("add values to CRD %s: %w", values.crd, err)
			}
		}
	}
	return nil
}

// addValues adds values to the enumeration of the field at a path.
func addValues(schema *apiextensionsv1.JSONSchemaProps, path, values []string) error {
	property, found := schema.Properties[path[0]]
	if !found {
		return fmt.Errorf("there is no field %s", path[0])
	}
	if len(path) > 1 {
		if err := addValues(&property, path[1:], values); err != nil {
			return err
		}
		schema.Properties[path[0]] = property
		return nil
	}
	for _, value := range values {
		raw := []byte(strconv.Quote(value))
		if slices.ContainsFunc(property.Enum, func(known apiextensionsv1.JSON) bool { return bytes.Equal(known.Raw, raw) }) {
			return fmt.Errorf("field %s takes %s by itself now: remove it from the values that are added", path[0], value)
		}
		property.Enum = append(property.Enum, apiextensionsv1.JSON{Raw: raw})
	}
	schema.Properties[path[0]] = property
	return nil
}

// addNewFields adds the fields to every version of their CRDs.
func addNewFields(crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, field := range newFields {
		for _, crd := range crds {
			if crd.Name != field.crd {
				continue
			}
			if err := field.addTo(crd); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f newField) addTo(crd *apiextensionsv1.CustomResourceDefinition) error {
	for i := range crd.Spec.Versions {
		if err := f.addBelow(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, strings.Split(f.parent, ".")); err != nil {
			return fmt.Errorf("CRD %s: %w", f.crd, err)
		}
	}
	return nil
}

// addBelow adds the field to the object at a path below a schema.
func (f newField) addBelow(schema *apiextensionsv1.JSONSchemaProps, path []string) error {
	if len(path) > 0 {
		property, found := schema.Properties[path[0]]
		if !found {
			return fmt.Errorf("there is no %s to add field %s to", f.parent, f.name)
		}
		if err := f.addBelow(&property, path[1:]); err != nil {
			return err
		}
		schema.Properties[path[0]] = property
		return nil
	}
	if _, known := schema.Properties[f.name]; known {
		return fmt.Errorf("there is %s.%s by itself now: remove it from the fields that are added", f.parent, f.name)
	}
	schema.Properties[f.name] = f.schema
	return nil
}
