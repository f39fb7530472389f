// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

func exampleCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "examples.example.com"
	crd.Spec.Group = "example.cluster.x-k8s.io"
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Example", ShortNames: []string{"ex"}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true,
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: "string", MaxLength: ptr.To[int64](10), Enum: enum(`"a"`, `"b"`)},
				"open": {Type: "object", XPreserveUnknownFields: ptr.To(true)},
				"list": {
					Type: "array", XListType: ptr.To("atomic"), MinItems: ptr.To[int64](1),
					Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To(1.0)}},
				},
			},
		}},
	}}
	return crd
}

// TestIncompatibilities breaks an example in every way, and changes it in ways that break nothing.
func TestIncompatibilities(t *testing.T) {
	type crd = apiextensionsv1.CustomResourceDefinition
	// field changes a field of the only version.
	field := func(name string, change func(*apiextensionsv1.JSONSchemaProps)) func(*crd) {
		return func(c *crd) {
			fields := c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
			changed := fields[name]
			change(&changed)
			fields[name] = changed
		}
	}
	for name, test := range map[string]struct {
		change func(*crd)
		want   string
	}{
		"the name":        {func(c *crd) { c.Name = "others.example.com" }, "name or the scope"},
		"a short name":    {func(c *crd) { c.Spec.Names.ShortNames = nil }, "short name ex"},
		"a version":       {func(c *crd) { c.Spec.Versions[0].Name = "v2" }, "not served"},
		"an unserved one": {func(c *crd) { c.Spec.Versions[0].Served = false }, "not served"},
		"the status":      {func(c *crd) { c.Spec.Versions[0].Subresources = nil }, "subresource"},
		"a field":         {func(c *crd) { delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "name") }, "v1.name: the field is gone"},
		"a required one": {
			func(c *crd) { c.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = []string{"name"} }, "v1.name: the field has become required",
		},
		"a type":    {field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.Type = "integer" }), "v1.name: the type"},
		"a value":   {field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.Enum = s.Enum[:1] }), `the value "b" is gone`},
		"an enum":   {field("list", func(s *apiextensionsv1.JSONSchemaProps) { s.Enum = enum("1") }), "limited"},
		"a maximum": {field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength = ptr.To[int64](9) }), "narrower"},
		"a minimum": {field("list", func(s *apiextensionsv1.JSONSchemaProps) { s.MinItems = ptr.To[int64](2) }), "narrower"},
		"a new one": {field("list", func(s *apiextensionsv1.JSONSchemaProps) { s.MaxItems = ptr.To[int64](99) }), "narrower"},
		"an item":   {field("list", func(s *apiextensionsv1.JSONSchemaProps) { s.Items.Schema.Minimum = ptr.To(2.0) }), "v1.list[]: a bound"},
		"a pattern": {field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = "^a" }), "pattern"},
		"a list":    {field("list", func(s *apiextensionsv1.JSONSchemaProps) { s.XListType = ptr.To("set") }), "kind of list"},
		"a rule":    {field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.XValidations = rule("true") }), "new rule"},
		"the rest":  {field("open", func(s *apiextensionsv1.JSONSchemaProps) { s.XPreserveUnknownFields = nil }), "dropped"},
		"nothing":   {func(*crd) {}, ""},
		"wider":     {field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength, s.Enum = nil, nil }), ""},
		"a minimum of 0": {
			field("name", func(s *apiextensionsv1.JSONSchemaProps) { s.MinLength = ptr.To[int64](0) }), "",
		},
		"another field": {
			func(c *crd) {
				c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["more"] = apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: "a"}
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := exampleCRD()
			test.change(now)
			problems := incompatibilities(exampleCRD(), now)
			if test.want == "" {
				NewWithT(t).Expect(problems).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(problems).To(ConsistOf(ContainSubstring(test.want)))
		})
	}
	NewWithT(t).Expect(incompatibilities(exampleCRD(), nil)).To(ConsistOf("Example: the kind is gone"))
}

func enum(values ...string) []apiextensionsv1.JSON {
	var all []apiextensionsv1.JSON
	for _, value := range values {
		all = append(all, apiextensionsv1.JSON{Raw: []byte(value)})
	}
	return all
}

func rule(text string) apiextensionsv1.ValidationRules {
	return apiextensionsv1.ValidationRules{{Rule: text}}
}

// TestVersionsConvert checks the rules of docs/support.md for a kind with several versions: one is stored, it is served and the hub, and
// the others convert to it and back, which a fuzz test of Cluster API's util/conversion shows.
func TestVersionsConvert(t *testing.T) {
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			NewWithT(t).Expect(conversionProblems(crd, methods(t))).To(BeEmpty())
		})
	}
	none := map[string]bool{}
	two := exampleCRD()
	two.Spec.Versions = append(two.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true})
	for name, test := range map[string]struct {
		crd     *apiextensionsv1.CustomResourceDefinition
		methods map[string]bool
		want    []string
	}{
		"one version": {exampleCRD(), none, nil},
		"two without conversions": {two, none, []string{
			"example/v1 Example has no Hub", "example/v2 Example has no ConvertTo", "example/v2 Example has no ConvertFrom",
			"example/v2 Example has no FuzzTestFuncInput",
		}},
		"two without a fuzz test": {two, map[string]bool{
			"example/v1 Example.Hub": true, "example/v2 Example.ConvertTo": true, "example/v2 Example.ConvertFrom": true,
		}, []string{"example/v2 Example has no FuzzTestFuncInput"}},
		"two with them": {two, map[string]bool{
			"example/v1 Example.Hub": true, "example/v2 Example.ConvertTo": true, "example/v2 Example.ConvertFrom": true,
			"example/v2 Example.FuzzTestFuncInput": true,
		}, nil},
		"none is stored": {func() *apiextensionsv1.CustomResourceDefinition {
			c := exampleCRD()
			c.Spec.Versions[0].Storage = false
			return c
		}(), none, []string{"0 versions are stored, want 1"}},
		"what is stored is not served": {func() *apiextensionsv1.CustomResourceDefinition {
			c := exampleCRD()
			c.Spec.Versions[0].Served = false
			return c
		}(), none, []string{"v1 is stored and not served"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(conversionProblems(test.crd, test.methods)).To(Equal(test.want))
		})
	}
}

// conversionProblems returns what a CRD of several versions lacks; has are the methods of the Go types.
func conversionProblems(crd *apiextensionsv1.CustomResourceDefinition, has map[string]bool) []string {
	var problems []string
	stored := 0
	need := func(version, method string) {
		group, _, _ := strings.Cut(crd.Spec.Group, ".")
		name := group + "/" + version + " " + crd.Spec.Names.Kind
		if len(crd.Spec.Versions) > 1 && !has[name+"."+method] {
			problems = append(problems, name+" has no "+method)
		}
	}
	for _, version := range crd.Spec.Versions {
		if !version.Storage {
			need(version.Name, "ConvertTo")
			need(version.Name, "ConvertFrom")
			need(version.Name, fuzzInput)
			continue
		}
		stored++
		need(version.Name, "Hub")
		if !version.Served {
			problems = append(problems, version.Name+" is stored and not served")
		}
	}
	if stored != 1 {
		problems = append(problems, fmt.Sprintf("%d versions are stored, want 1", stored))
	}
	return problems
}

// methods returns the methods of the API's types: "bootstrap/v1beta1 OpenshiftAssistedConfig.Hub". A type whose conversion is fuzzed by a
// test of its package has a method of the name fuzzInput.
func methods(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	NewWithT(t).Expect(fs.WalkDir(os.DirFS("."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.Count(path, "/") != 2 {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil {
				found[path[:strings.LastIndex(path, "/")]+" "+nameOf(function.Recv.List[0].Type)+"."+function.Name.Name] = true
			}
		}
		for _, kind := range fuzzed(file) {
			found[path[:strings.LastIndex(path, "/")]+" "+kind+"."+fuzzInput] = true
		}
		return nil
	})).To(Succeed())
	NewWithT(t).Expect(found).To(HaveKey("bootstrap/v1beta1 OpenshiftAssistedConfig.DeepCopy"), "the types are not found")
	return found
}

// nameOf is the name of the type that a method belongs to, or of which a value or its address is made; empty for others.
func nameOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.UnaryExpr:
		return nameOf(e.X)
	case *ast.CompositeLit:
		return nameOf(e.Type)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// fuzzInput is the type of Cluster API's util/conversion that describes a fuzz test of a conversion.
const fuzzInput = "FuzzTestFuncInput"

// fuzzed returns the kinds whose conversion to the hub and back a file fuzzes.
func fuzzed(file *ast.File) []string {
	var kinds []string
	ast.Inspect(file, func(node ast.Node) bool {
		input, ok := node.(*ast.CompositeLit)
		if !ok || nameOf(input.Type) != fuzzInput {
			return true
		}
		for _, element := range input.Elts {
			if field, ok := element.(*ast.KeyValueExpr); ok && nameOf(field.Key) == "Spoke" {
				kinds = append(kinds, nameOf(field.Value))
			}
		}
		return true
	})
	return kinds
}

func TestFuzzed(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "conversion_test.go", `package v1beta2

func TestConversion(t *testing.T) {
	t.Run("Example", conversion.FuzzTestFunc(conversion.FuzzTestFuncInput{Hub: &v1.Example{}, Spoke: &Example{}}))
	t.Run("Other", conversion.FuzzTestFunc(conversion.FuzzTestFuncInput{Hub: &v1.Other{}, Spoke: &v2.Other{}}))
}`, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fuzzed(file)).To(Equal([]string{"Example", "Other"}))
}
