// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// structs are the struct types of the API packages by name.
type structs map[string]*apiStruct

// apiStruct is one struct type with its comment, which holds its markers.
type apiStruct struct {
	name   string
	doc    string
	fields []apiField
}

// apiField is one field as its source says it.
type apiField struct {
	goName   string // empty when embedded
	json     []string
	doc      string
	typeName string // *bool, []string, NodeLabel, metav1.ObjectMeta
}

func (f apiField) has(marker string) bool { return strings.Contains("\n"+f.doc, "\n+"+marker) }

// TestTypes checks the rules of kube-api-linter that show in the Go types (CONTRACT QUAL-5, QUAL-6).
func TestTypes(t *testing.T) {
	all := parseTypes(t)
	for _, s := range all {
		for _, field := range s.fields {
			if slices.Contains(field.json, "inline") {
				continue
			}
			for _, problem := range slices.Concat(fieldProblems(field), omitProblems(s, field, all)) {
				t.Errorf("%s.%s: %s", s.name, field.json[0], problem)
			}
		}
		if problem := structProblem(s, all); problem != "" {
			t.Errorf("%s: %s", s.name, problem)
		}
	}
}

func fieldProblems(field apiField) []string {
	var problems []string
	if !strings.HasPrefix(field.doc, field.json[0]+" ") {
		problems = append(problems, "its comment does not start with its JSON name")
	}
	if field.has("optional") == field.has("required") {
		problems = append(problems, "needs exactly one of +optional and +required")
	}
	if field.has("kubebuilder:default") || field.has("nullable") {
		problems = append(problems, "has a marker that is forbidden: default at use, and leave out what is not set")
	}
	banned := []string{"bool", "int", "uint", "uint32", "uint64", "float32", "float64", "metav1.Duration", "time.Duration", "any"}
	if slices.Contains(banned, strings.TrimLeft(field.typeName, "*[]")) && field.typeName != "*bool" ||
		strings.HasPrefix(field.typeName, "map[") {
		problems = append(problems, "has the type "+field.typeName+": use *bool, int32 or int64, …Seconds, a list with a key")
	}
	return problems
}

// omitProblems checks that an empty value is left out, as it would be refused, or mean something else, when it was sent.
func omitProblems(s *apiStruct, field apiField, all structs) []string {
	if field.goName == "" || field.json[0] == "items" {
		return nil // embedded metadata, and the items of a list, which are [] when there are none
	}
	if !slices.Contains(field.json, "omitempty") {
		return []string{"needs omitempty"}
	}
	target, isStruct := all[unqualified(field.typeName)]
	isStruct = isStruct || !strings.HasPrefix(field.typeName, "[]") &&
		(strings.HasSuffix(field.typeName, "ObjectMeta") || strings.HasSuffix(field.typeName, "Reference") ||
			strings.HasSuffix(field.typeName, "RawExtension"))
	// {} is how to ask for a required struct whose fields are all left to their defaults.
	if !isStruct || target != nil && field.has("required") && target.mayBeEmpty() {
		return nil
	}
	if !slices.Contains(field.json, "omitzero") {
		return []string{"is a struct and needs omitzero, in " + s.name}
	}
	return nil
}

// structProblem checks that a struct whose fields are all optional cannot be {}, and that a status begins with conditions.
func structProblem(s *apiStruct, all structs) string {
	if strings.HasSuffix(s.name, "ControlPlaneStatus") || strings.HasSuffix(s.name, "ConfigStatus") {
		if s.fields[0].json[0] != "conditions" {
			return "conditions must be the first field of a status"
		}
	}
	if s.isRoot() || !s.mayBeEmpty() || isRequiredSomewhere(s.name, all) {
		return ""
	}
	return "has only optional fields and no MinProperties"
}

func isRequiredSomewhere(name string, all structs) bool {
	for _, s := range all {
		for _, field := range s.fields {
			if unqualified(field.typeName) == name && field.has("required") {
				return true
			}
		}
	}
	return false
}

func (s *apiStruct) isRoot() bool { return strings.Contains(s.doc, "+kubebuilder:object:root=true") }

func (s *apiStruct) mayBeEmpty() bool {
	return !strings.Contains(s.doc, "MinProperties") && !slices.ContainsFunc(s.fields, func(f apiField) bool { return f.has("required") })
}

func unqualified(typeName string) string {
	_, name, ok := strings.Cut(typeName, ".")
	if !ok {
		return typeName
	}
	return name
}

func parseTypes(t *testing.T) structs {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob("*/v1beta1/*_types.go")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	all := structs{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		g.Expect(err).NotTo(HaveOccurred())
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			addStruct(all, group)
		}
	}
	return all
}

func addStruct(all structs, group *ast.GenDecl) {
	spec := group.Specs[0].(*ast.TypeSpec)
	structType, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	s := &apiStruct{name: spec.Name.Name, doc: rawComment(group.Doc)}
	for _, field := range structType.Fields.List {
		parsed := apiField{doc: rawComment(field.Doc), typeName: typeName(field.Type)}
		if len(field.Names) > 0 {
			parsed.goName = field.Names[0].Name
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		parsed.json = strings.Split(tag, ",")
		s.fields = append(s.fields, parsed)
	}
	all[s.name] = s
}

// rawComment keeps the markers, which CommentGroup.Text drops.
func rawComment(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	lines := make([]string, 0, len(group.List))
	for _, comment := range group.List {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(comment.Text, "//"), " "))
	}
	return strings.Join(lines, "\n")
}

func typeName(expression ast.Expr) string {
	switch typed := expression.(type) {
	case *ast.Ident:
		return typed.Name
	case *ast.StarExpr:
		return "*" + typeName(typed.X)
	case *ast.ArrayType:
		return "[]" + typeName(typed.Elt)
	case *ast.SelectorExpr:
		return typeName(typed.X) + "." + typed.Sel.Name
	case *ast.MapType:
		return "map[" + typeName(typed.Key) + "]" + typeName(typed.Value)
	default:
		return fmt.Sprintf("%T", expression)
	}
}
