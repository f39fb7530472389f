// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// TestRules checks that the rules above find what they look for.
func TestRules(t *testing.T) {
	good := apiField{goName: "Name", json: []string{"name", "omitempty"}, doc: "name is good.\n+optional", typeName: "string"}
	fields := map[string]struct {
		spoil func(*apiField)
		want  string
	}{
		"comment":  {func(f *apiField) { f.doc = "the name.\n+optional" }, "JSON name"},
		"neither":  {func(f *apiField) { f.doc = "name is good." }, "exactly one"},
		"default":  {func(f *apiField) { f.doc += "\n+kubebuilder:default=a" }, "forbidden"},
		"bool":     {func(f *apiField) { f.typeName = "bool" }, "type bool"},
		"map":      {func(f *apiField) { f.typeName = "map[string]string" }, "type map"},
		"duration": {func(f *apiField) { f.typeName = "*metav1.Duration" }, "type *metav1.Duration"},
		"omit":     {func(f *apiField) { f.json = []string{"name"} }, "omitempty"},
		"omitzero": {func(f *apiField) { f.typeName = "clusterv1.ObjectMeta" }, "omitzero"},
	}
	for name, test := range fields {
		t.Run(name, func(t *testing.T) {
			field := good
			test.spoil(&field)
			problems := append(fieldProblems(field), omitProblems(&apiStruct{}, field, structs{})...)
			NewWithT(t).Expect(problems).To(ConsistOf(ContainSubstring(test.want)))
		})
	}
	schemas := map[string]struct {
		schema apiextensionsv1.JSONSchemaProps
		want   string
	}{
		"float":         {apiextensionsv1.JSONSchemaProps{Type: "number"}, "type number"},
		"string":        {apiextensionsv1.JSONSchemaProps{Type: "string"}, "maxLength"},
		"integer":       {apiextensionsv1.JSONSchemaProps{Type: "integer"}, "int32"},
		"empty object":  {apiextensionsv1.JSONSchemaProps{Type: "object"}, "minProperties"},
		"nullable":      {apiextensionsv1.JSONSchemaProps{Type: "boolean", Nullable: true}, "nullable"},
		"default":       {apiextensionsv1.JSONSchemaProps{Type: "boolean", Default: &apiextensionsv1.JSON{Raw: []byte("true")}}, "default"},
		"list":          {apiextensionsv1.JSONSchemaProps{Type: "array", XListType: ptr.To("set")}, "maxItems"},
		"list type":     {apiextensionsv1.JSONSchemaProps{Type: "array", MaxItems: ptr.To[int64](1)}, "listType"},
		"list map keys": {apiextensionsv1.JSONSchemaProps{Type: "array", MaxItems: ptr.To[int64](1), XListType: ptr.To("map")}, "listMapKey"},
		"map": {apiextensionsv1.JSONSchemaProps{
			Type: "object", MinProperties: ptr.To[int64](1), AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true},
		}, "is a map"},
	}
	for name, test := range schemas {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(schemaProblems("spec.field", &test.schema)).To(ConsistOf(ContainSubstring(test.want)))
		})
	}
}
