// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

func TestDocumentIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	root := filepath.Join("..", "..")
	want, err := render(root)
	g.Expect(err).NotTo(HaveOccurred())
	document, err := os.ReadFile(filepath.Join(root, output))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(document)).To(Equal(string(want)), "run make generate")
}

func TestSections(t *testing.T) {
	g := NewWithT(t)
	boot := apiextensionsv1.JSONSchemaProps{
		Description: "boot says how. Defaults to the usual. More | of it. Never changeable.", MinProperties: ptr.To[int64](1),
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"mode": {
			Type: "string", Description: "mode is <how>. Changeable at any time.",
			Enum: []apiextensionsv1.JSON{{Raw: []byte(`"A"`)}, {Raw: []byte(`"B"`)}},
		}},
	}
	spec := &apiextensionsv1.JSONSchemaProps{
		Description: "The spec.",
		Required:    []string{"names"},
		XValidations: apiextensionsv1.ValidationRules{
			{FieldPath: ".boot", Message: "is immutable"}, {FieldPath: ".boot", Message: "is immutable"},
		},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"boot": boot, "again": boot,
			"names": {
				Type: "array", MaxItems: ptr.To[int64](2),
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "string", MinLength: ptr.To[int64](1), XValidations: apiextensionsv1.ValidationRules{{Message: "must be a name"}},
				}},
			},
		},
	}
	d := &document{}
	d.object("Config spec", "spec", spec)
	g.Expect(d.out.String()).To(Equal(`
### Config spec

The spec.

- ` + "`boot`" + `: is immutable

| field | type | default | description | allowed | changeable |
|---|---|---|---|---|---|
| ` + "`again`" + ` | [Config spec.again](#config-specagain) | the usual | boot says how. More \| of it. | at least 1 properties | never |
| ` + "`boot`" + ` | [Config spec.again](#config-specagain) | the usual | boot says how. More \| of it. | at least 1 properties | never |
| ` + "`names`" + ` * | list of string |  |  | at most 2 items; each: at least 1 characters; each: must be a name |  |

### Config spec.again

boot says how. Defaults to the usual. More \| of it. Never changeable.

| field | type | default | description | allowed | changeable |
|---|---|---|---|---|---|
| ` + "`mode`" + ` | string |  | mode is &lt;how>. | ` + "`A`, `B`" + ` | at any time |
`))
}
