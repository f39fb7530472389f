// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// newField is a field that a service's releases have and the newest Go module of its API has not (DESIGN D17). Without it
// the apiserver drops what the service writes there.
type newField struct {
	crd    string
	parent string // property of the object's schema: spec or status
	name   string
	schema apiextensionsv1.JSONSchemaProps
}

var newFields = []newField{
	// NTP servers that replace those of the network, and the wait of minimal ISOs for their interfaces (ASSISTED 1.1).
	{crd: "infraenvs.agent-install.openshift.io", parent: "spec", name: "ntpSources", schema: apiextensionsv1.JSONSchemaProps{
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
	}},
	{crd: "infraenvs.agent-install.openshift.io", parent: "spec", name: "networkDiscoveryDelaySeconds", schema: apiextensionsv1.JSONSchemaProps{
		Type: "integer", Format: "int64", Minimum: ptr.To(0.0),
	}},
	// Host or AddToExistingClusterHost (ASSISTED 1.2).
	{crd: "agents.agent-install.openshift.io", parent: "status", name: "kind", schema: apiextensionsv1.JSONSchemaProps{Type: "string"}},
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
		properties := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties
		parent, found := properties[f.parent]
		if !found {
			return fmt.Errorf("CRD %s has no %s to add field %s to", f.crd, f.parent, f.name)
		}
		if _, known := parent.Properties[f.name]; known {
			return fmt.Errorf("CRD %s has %s.%s by itself now: remove it from the fields that are added", f.crd, f.parent, f.name)
		}
		parent.Properties[f.name] = f.schema
		properties[f.parent] = parent
	}
	return nil
}
