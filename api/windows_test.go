// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/windows"
)

// laterConfigs is the field of a control plane whose fields say until when those of the configs can change that are made of it.
const laterConfigs = "spec.openshiftAssistedConfigSpec"

// TestWindows: every field of a spec says until when it can change, by itself or by a field around it, and they do not contradict each
// other. That admission does what they say is a test of the webhooks.
func TestWindows(t *testing.T) {
	crds := readCRDs(t)
	for _, kind := range []string{configKind, controlPlaneKind} {
		t.Run(kind, func(t *testing.T) {
			for _, problem := range windowProblems(schemaOf(t, crds[kind])) {
				t.Error(problem)
			}
		})
	}
}

func windowProblems(schema *apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	spec := schema.Properties["spec"]
	for _, path := range crdschema.Leaves(&spec, "spec") {
		switch said := windows.At(schema, path); {
		case len(said) == 0:
			problems = append(
				problems, path+": neither it nor a field around it says until when it can change: end its comment with a sentence of test/windows",
			)
		case len(said) > 1 && !strings.HasPrefix(path, laterConfigs+"."):
			problems = append(problems, path+": it says until when it can change, and a field around it says something else")
		}
	}
	return problems
}

// TestWindowProblems checks that the rule above finds what it looks for.
func TestWindowProblems(t *testing.T) {
	object := func(description, name string, property apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		return &apiextensionsv1.JSONSchemaProps{Description: description, Properties: map[string]apiextensionsv1.JSONSchemaProps{name: property}}
	}
	field := func(description string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Description: description}
	}
	for name, test := range map[string]struct {
		proxy, url string
		want       types.GomegaMatcher
	}{
		"said by the field":        {"proxy is one.", "url is one. Never changeable.", BeEmpty()},
		"said by the field around": {"proxy is one. Never changeable.", "url is one.", BeEmpty()},
		"said twice":               {"proxy is one. Never changeable.", "url is one. Never changeable.", BeEmpty()},
		"not said":                 {"proxy is one.", "url is one.", ConsistOf(HavePrefix("spec.proxy.url: neither"))},
		"said in words of its own": {"proxy is one.", "url is one. Changeable on Sundays.", ConsistOf(HavePrefix("spec.proxy.url: neither"))},
		"said not at the end": {"proxy is one.", "url is one. Never changeable. Honestly.",
			ConsistOf(HavePrefix("spec.proxy.url: neither"))},
		"contradicted": {"proxy is one. Never changeable.", "url is one. Changeable at any time.",
			ConsistOf(HavePrefix("spec.proxy.url: it says"))},
	} {
		t.Run(name, func(t *testing.T) {
			schema := object("", "spec", *object("", "proxy", *object(test.proxy, "url", field(test.url))))
			NewWithT(t).Expect(windowProblems(schema)).To(test.want)
		})
	}
}
