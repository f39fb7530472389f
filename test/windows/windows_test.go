// SPDX-License-Identifier: Apache-2.0

package windows_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/windows"
)

func TestSplit(t *testing.T) {
	g := NewWithT(t)
	rest, window := windows.Split("name is a\nname.\n\nChangeable before the\ninstallation.")
	g.Expect(rest).To(Equal("name is a name."))
	g.Expect(window).To(Equal(windows.BeforeInstallation))
	g.Expect(window.Short()).To(Equal("before the installation"))
	rest, window = windows.Split("name is never changeable. Really.")
	g.Expect(rest).To(Equal("name is never changeable. Really."))
	g.Expect(window).To(BeEmpty())
	g.Expect(windows.Never.Short()).To(Equal("never"))
}

func TestAt(t *testing.T) {
	g := NewWithT(t)
	object := func(description string, properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Description: description, Properties: properties}
	}
	item := object(
		"An item. Never changeable.", map[string]apiextensionsv1.JSONSchemaProps{"key": object("key is one. Changeable at any time.", nil)},
	)
	schema := object("", map[string]apiextensionsv1.JSONSchemaProps{"spec": object("", map[string]apiextensionsv1.JSONSchemaProps{
		"list": {Description: "list is one. Never changeable.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}},
		"map":  {Description: "map is one.", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &item}},
		"proxy": object(
			"proxy is one. Never changeable.", map[string]apiextensionsv1.JSONSchemaProps{"url": object("url is one. Never changeable.", nil)},
		),
	})})
	g.Expect(windows.At(&schema, "spec.list[].key")).To(Equal([]windows.Window{windows.Never, windows.AtAnyTime}))
	g.Expect(windows.At(&schema, "spec.map{}.key")).To(Equal([]windows.Window{windows.AtAnyTime}))
	g.Expect(windows.At(&schema, "spec.proxy.url")).To(Equal([]windows.Window{windows.Never}))
	g.Expect(windows.At(&schema, "spec.map")).To(BeEmpty())
	g.Expect(windows.At(&schema, "spec.other")).To(BeEmpty())
}

func TestChanges(t *testing.T) {
	g := NewWithT(t)
	changes := windows.Changes[bootstrapv1.OpenshiftAssistedConfigSpec]()
	g.Expect(changes).To(And(HaveKey("spec.boot.mode"), HaveKey("spec.nodeRegistration.labels"), HaveKey("spec.nmStateConfigSelector")))
	g.Expect(changes).NotTo(Or(HaveKey("spec.boot"), HaveKey("spec.nmStateConfigSelector.matchLabels")))
	for path, change := range changes {
		spec := bootstrapv1.OpenshiftAssistedConfigSpec{}
		change(&spec)
		g.Expect(spec).NotTo(Equal(bootstrapv1.OpenshiftAssistedConfigSpec{}), path)
		once := *spec.DeepCopy()
		change(&spec)
		if path != "spec.nmStateConfigSelector" {
			g.Expect(spec).NotTo(Equal(once), path)
		}
	}
}
