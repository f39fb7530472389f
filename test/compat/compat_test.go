// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/internal/metal3"
)

func TestCompatibility(t *testing.T) {
	crds := load(t)
	testFields(t, crds)
	t.Run("length of image URLs", func(t *testing.T) { testImageURLLength(t, crds[crdMetal3Machines]) })
}

// testFields checks that every field exists with its type, that fields which the managers write take their values, and
// that nothing is required which the managers do not write.
func testFields(t *testing.T, crds versions) {
	t.Helper()
	checked := map[string]bool{}
	for _, u := range uses {
		schema, served := crds[u.crd][u.version]
		if !served && u.optional {
			continue
		}
		checked[u.crd] = true
		t.Run(u.crd+" "+u.version, func(t *testing.T) {
			if !served {
				t.Fatalf("version %s of %s is not served", u.version, u.crd)
			}
			checkUse(t, u, schema)
		})
	}
	for _, u := range uses {
		if !checked[u.crd] {
			t.Errorf("no known version of %s is served: found %v", u.crd, slices.Sorted(maps.Keys(crds[u.crd])))
		}
	}
}

// testImageURLLength checks the length up to which the managers hand over a URL (METAL3 M3-20).
func testImageURLLength(t *testing.T, machines map[string]*apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for version, schema := range machines {
		limit := lookup(schema, "spec.image.url").MaxLength
		if limit != nil && *limit != metal3.MaxImageURLLength {
			t.Errorf("%s %s takes image URLs of %d characters, the managers expect %d", crdMetal3Machines, version, *limit, metal3.MaxImageURLLength)
		}
	}
}

func checkUse(t *testing.T, u use, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for _, group := range []fields{u.reads, u.writes} {
		for _, path := range slices.Sorted(maps.Keys(group)) {
			checkField(t, schema, path, group[path])
		}
	}
	for path, value := range u.accepts {
		if values := enum(lookup(schema, path)); len(values) > 0 && !slices.Contains(values, value) {
			t.Errorf("%s takes %v and not %q", path, values, value)
		}
	}
	for _, missing := range missingRequired(schema, u.writes) {
		t.Errorf("%s is required and the managers do not write it", missing)
	}
}

func checkField(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, path, want string) {
	t.Helper()
	field := lookup(schema, path)
	switch {
	case field == nil:
		t.Errorf("%s does not exist", path)
	case field.Type != want:
		t.Errorf("%s is of type %s, the managers take it for %s", path, field.Type, want)
	}
}

// lookup returns the schema of a path, nil when there is none.
func lookup(schema *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for _, part := range strings.Split(path, ".") {
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

// missingRequired returns the required fields of every object that is written in part.
func missingRequired(schema *apiextensionsv1.JSONSchemaProps, written fields) []string {
	var missing []string
	for _, parent := range parents(written) {
		node := lookup(schema, parent)
		if node == nil {
			continue // reported as a field that does not exist
		}
		for _, required := range node.Required {
			if !writes(written, parent+"."+required) && node.Properties[required].Default == nil {
				missing = append(missing, parent+"."+required)
			}
		}
	}
	return missing
}

// parents returns the paths of all objects that have one of the fields, sorted.
func parents(written fields) []string {
	found := map[string]bool{}
	for path := range written {
		for i := strings.LastIndex(path, "."); i > 0; i = strings.LastIndex(path[:i], ".") {
			found[path[:i]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func writes(written fields, path string) bool {
	for field := range written {
		if field == path || strings.HasPrefix(field, path+".") || strings.HasPrefix(field, path+"[") || strings.HasPrefix(field, path+"{") {
			return true
		}
	}
	return false
}

func enum(schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema == nil {
		return nil
	}
	values := make([]string, 0, len(schema.Enum))
	for _, value := range schema.Enum {
		values = append(values, strings.Trim(string(value.Raw), `"`))
	}
	return values
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// TestLookup checks that the test sees what is missing.
func TestLookup(t *testing.T) {
	g := NewWithT(t)
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {
			Required: []string{"name", "role"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: text},
				"list": {Type: list, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: integer}}},
			},
		},
	}}
	g.Expect(lookup(schema, "spec.name").Type).To(Equal(text))
	g.Expect(lookup(schema, "spec.list[]").Type).To(Equal(integer))
	g.Expect(lookup(schema, "spec.name{}")).To(BeNil())
	g.Expect(lookup(schema, "spec.other")).To(BeNil())
	g.Expect(missingRequired(schema, fields{"spec.name": text})).To(ConsistOf("spec.role"))
}
