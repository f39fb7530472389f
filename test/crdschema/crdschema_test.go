// SPDX-License-Identifier: Apache-2.0

package crdschema_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/test/crdschema"
)

func listOf(items apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
}

func schema() *apiextensionsv1.JSONSchemaProps {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name":   text,
			"list":   listOf(apiextensionsv1.JSONSchemaProps{Type: "integer"}),
			"labels": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
			"networks": listOf(apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"cidr": text,
			}}),
		}},
	}}
}

func TestLookup(t *testing.T) {
	g := NewWithT(t)
	g.Expect(crdschema.Lookup(schema(), "spec.name").Type).To(Equal("string"))
	g.Expect(crdschema.Lookup(schema(), "spec.list[]").Type).To(Equal("integer"))
	g.Expect(crdschema.Lookup(schema(), "spec.networks[].cidr").Type).To(Equal("string"))
	g.Expect(crdschema.Lookup(schema(), "spec.name{}")).To(BeNil())
	g.Expect(crdschema.Lookup(schema(), "spec.other")).To(BeNil())
}

func TestLeaves(t *testing.T) {
	g := NewWithT(t)
	spec := crdschema.Lookup(schema(), "spec")
	g.Expect(crdschema.Leaves(spec, "spec")).To(Equal([]string{"spec.labels{}", "spec.list[]", "spec.name", "spec.networks[].cidr"}))
}
