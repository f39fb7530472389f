// SPDX-License-Identifier: Apache-2.0

package coverage_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/test/coverage"
)

// The table against the services' CustomResourceDefinitions is a test of test/compat, which has them.

func TestNamedFieldsExist(t *testing.T) {
	g := NewWithT(t)
	root := filepath.Join("..", "..")
	table, err := coverage.Load(root)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(table.Dangling(root)).To(BeEmpty())
	table["Agent"]["spec.role"] = coverage.Entry{Field: "OpenshiftAssistedConfig.spec.role"}
	g.Expect(table.Dangling(root)).To(ConsistOf("Agent spec.role: there is no field OpenshiftAssistedConfig.spec.role"))
}

func TestTableAgainstSchema(t *testing.T) {
	g := NewWithT(t)
	object := func(names ...string) apiextensionsv1.JSONSchemaProps {
		properties := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, name := range names {
			properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return apiextensionsv1.JSONSchemaProps{Properties: properties}
	}
	spec := object("role", "roles", "hostname", "kind")
	spec.Properties["proxy"] = object("http", "no")
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
	table := coverage.Table{"Agent": {
		"spec.role": {Provider: "a"}, "spec.proxy": {Declined: "b"}, "spec.proxy.no": {Field: "c"}, "spec.gone": {Declined: "d"},
		"spec.newer": {Declined: "e", Unpinned: true}, "spec.kind": {Declined: "f", Unpinned: true},
	}}
	g.Expect(table.Unaccounted("Agent", schema)).To(ConsistOf("spec.roles", "spec.hostname"))
	g.Expect(table.Stale("Agent", schema)).To(ConsistOf(HavePrefix("spec.gone covers no field"), HavePrefix("spec.kind is in the CRD")))
}
