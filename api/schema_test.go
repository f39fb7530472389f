// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// imported are the types that come from Kubernetes and Cluster API as they are, by the last part of their path: their
// maps and unbounded strings are not ours to change.
var imported = []string{
	"metadata",              // metav1.ObjectMeta and clusterv1.ObjectMeta
	"nmStateConfigSelector", // metav1.LabelSelector
}

func isImported(path string) bool {
	for _, part := range strings.Split(path, ".") {
		if slices.Contains(imported, strings.TrimRight(part, "[]")) {
			return true
		}
	}
	return false
}

// TestSchemas checks the rules of kube-api-linter that show in the generated CRDs (CONTRACT QUAL-5, QUAL-6).
func TestSchemas(t *testing.T) {
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			walk("", schemaOf(t, crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
				for _, problem := range schemaProblems(path, schema) {
					t.Errorf("%s: %s", path, problem)
				}
			})
		})
	}
}

func schemaProblems(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	if path == "" || path == "kind" || path == "apiVersion" || isImported(path) {
		return nil
	}
	var problems []string
	if schema.Default != nil {
		problems = append(problems, "has a default in the CRD: old objects would change their meaning with it, default at use instead")
	}
	if schema.Nullable {
		problems = append(problems, "is nullable")
	}
	if schema.AdditionalProperties != nil {
		problems = append(problems, "is a map: use a list with a key")
	}
	if schema.XPreserveUnknownFields != nil && !slices.Contains(openObjects, path) {
		problems = append(problems, "keeps unknown fields")
	}
	return append(problems, typeProblems(path, schema)...)
}

func typeProblems(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	switch schema.Type {
	case "string":
		if schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format != "date-time" {
			return []string{"is a string without maxLength"}
		}
	case "array":
		return listProblems(schema)
	case "integer":
		if schema.Format != "int32" && schema.Format != "int64" {
			return []string{"is an integer that is neither int32 nor int64"}
		}
	case "boolean":
	case "object":
		if len(schema.Required) == 0 && schema.MinProperties == nil && path != "spec" && !slices.Contains(emptyObjects, path) {
			return []string{"has only optional fields and no minProperties: {} and absent would be two ways to say one thing"}
		}
	default:
		return []string{"has the type " + schema.Type + ", which no API of ours uses"}
	}
	return nil
}

func listProblems(schema *apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	if schema.MaxItems == nil {
		problems = append(problems, "is a list without maxItems")
	}
	if schema.XListType == nil {
		problems = append(problems, "is a list without listType")
	} else if *schema.XListType == "map" && len(schema.XListMapKeys) == 0 {
		problems = append(problems, "is a map list without listMapKey")
	}
	return problems
}

// openObjects hold what another API defines; a webhook checks what it can.
var openObjects = []string{
	"spec.install.configOverrides",               // of a control plane: an install-config
	"spec.template.spec.install.configOverrides", // of a control plane template
}

// emptyObjects are valid as {}: a config of which every field is left to its default.
var emptyObjects = []string{
	"spec.template.spec",                             // of a config template
	"spec.openshiftAssistedConfigSpec",               // of a control plane
	"spec.template.spec.openshiftAssistedConfigSpec", // of a control plane template
}
