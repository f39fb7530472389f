// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	configKind           = "OpenshiftAssistedConfig"
	configTemplate       = "OpenshiftAssistedConfigTemplate"
	controlPlaneKind     = "OpenshiftAssistedControlPlane"
	controlPlaneTemplate = "OpenshiftAssistedControlPlaneTemplate"
)

// readCRDs returns the generated CRDs by kind.
func readCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob("../config/*/crd/bases/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.UnmarshalStrict(data, crd)).To(Succeed(), file)
		crds[crd.Spec.Names.Kind] = crd
	}
	g.Expect(crds).To(HaveLen(4))
	return crds
}

// schemaOf returns the schema of a CRD's only version.
func schemaOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	g := NewWithT(t)
	g.Expect(crd.Spec.Versions).To(HaveLen(1))
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits a schema and everything in it; array items have the path of their array with [] at the end.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name := range schema.Properties {
		property := schema.Properties[name]
		walk(strings.TrimPrefix(path+"."+name, "."), &property, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
}

// at returns the schema at a path in the form of walk, nil when there is none.
func at(schema *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	var found *apiextensionsv1.JSONSchemaProps
	walk("", schema, func(p string, s *apiextensionsv1.JSONSchemaProps) {
		if p == path {
			found = s
		}
	})
	return found
}
