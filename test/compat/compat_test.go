// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/coverage"
	"github.com/capi-openshift/agent-providers/test/crdschema"
)

func TestCompatibility(t *testing.T) {
	crds := load(t)
	testFields(t, crds)
	t.Run("length of image URLs", func(t *testing.T) { testImageURLLength(t, crds[crdMetal3Machines]) })
	testCoverage(t, crds)
}

// testCoverage checks that docs/reference/coverage.yaml accounts for every field, and with the pinned versions that it says nothing of
// others.
func testCoverage(t *testing.T, crds versions) {
	t.Helper()
	table, err := coverage.Load(filepath.Join("..", ".."))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, kind := range coverage.Kinds {
		t.Run("coverage of "+kind.Name, func(t *testing.T) {
			g := NewWithT(t)
			schema := crds[kind.CRD][kind.Version]
			g.Expect(schema).NotTo(BeNil(), "version %s of %s is not served", kind.Version, kind.CRD)
			g.Expect(table.Unaccounted(kind.Name, schema)).To(BeEmpty(), "say in %s what becomes of these fields", coverage.File)
			if *crdFolder == "" {
				g.Expect(table.Stale(kind.Name, schema)).To(BeEmpty())
			}
		})
	}
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
		limit := crdschema.Lookup(schema, "spec.image.url").MaxLength
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
		if values := enum(crdschema.Lookup(schema, path)); len(values) > 0 && !slices.Contains(values, value) {
			t.Errorf("%s takes %v and not %q", path, values, value)
		}
	}
	for _, missing := range missingRequired(schema, u.writes) {
		t.Errorf("%s is required and the managers do not write it", missing)
	}
}

func checkField(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, path, want string) {
	t.Helper()
	field := crdschema.Lookup(schema, path)
	switch {
	case field == nil:
		t.Errorf("%s does not exist", path)
	case field.Type != want:
		t.Errorf("%s is of type %s, the managers take it for %s", path, field.Type, want)
	}
}

// missingRequired returns the required fields of every object that is written in part.
func missingRequired(schema *apiextensionsv1.JSONSchemaProps, written fields) []string {
	var missing []string
	for _, parent := range parents(written) {
		node := crdschema.Lookup(schema, parent)
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

// TestMissingRequired checks that the test sees what is missing.
func TestMissingRequired(t *testing.T) {
	g := NewWithT(t)
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {
			Required: []string{"name", "role"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: text},
			},
		},
	}}
	g.Expect(missingRequired(schema, fields{"spec.name": text})).To(ConsistOf("spec.role"))
}
