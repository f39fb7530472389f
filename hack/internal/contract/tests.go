// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// FunctionPrefix begins the name of every function that tests rules.
const FunctionPrefix = "TestContract"

// Test is a subtest whose name begins with the ids of the rules that it shows.
type Test struct {
	// Package is its folder, relative to the repository's root, with slashes.
	Package string
	// Function is the top-level test function that it is in.
	Function string
	// Name is its own name as it is written: the ids, then a sentence.
	Name string
}

// IDs returns the rules that the test shows.
func (t Test) IDs() []string { return ids(t.Name) }

// Sentence is the test's name without the ids.
func (t Test) Sentence() string {
	return strings.Join(strings.Fields(t.Name)[len(t.IDs()):], " ")
}

// ids returns the rule ids that a test's name begins with.
func ids(name string) []string {
	var found []string
	for _, word := range strings.Fields(name) {
		if !idPattern.MatchString(word) {
			break
		}
		found = append(found, word)
	}
	return found
}

// FindTests returns the tests of rules below the repository's root, in the order of their files: the string literals that begin with a rule
// id in functions whose names begin with FunctionPrefix.
func FindTests(root string) ([]Test, error) {
	var tests []Test
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		found, err := testsIn(path)
		for _, test := range found {
			test.Package = filepath.ToSlash(folder)
			tests = append(tests, test)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the tests of rules: %w", err)
	}
	return tests, nil
}

// testsIn returns the tests of one file, without their package.
func testsIn(path string) ([]Test, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var tests []Test
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !strings.HasPrefix(function.Name.Name, FunctionPrefix) {
			continue
		}
		ast.Inspect(function, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			// The parser has accepted the literal, so it can be unquoted.
			name, _ := strconv.Unquote(literal.Value)
			// An id alone is what a test works with, not its name.
			if test := (Test{Function: function.Name.Name, Name: name}); len(test.IDs()) > 0 && test.Sentence() != "" {
				tests = append(tests, test)
			}
			return true
		})
	}
	return tests, nil
}

// UnknownIDs lists the tests that are named after rules that the table does not have.
func UnknownIDs(rules []Rule, tests []Test) []string {
	known := map[string]bool{}
	for _, rule := range rules {
		known[rule.ID] = true
	}
	var problems []string
	for _, test := range tests {
		for _, id := range test.IDs() {
			if !known[id] {
				problems = append(problems, fmt.Sprintf("%s is named in %s in %s and is not in %s", id, test.Function, test.Package, File))
			}
		}
	}
	return problems
}

// ByRule returns the tests of every rule.
func ByRule(tests []Test) map[string][]Test {
	all := map[string][]Test{}
	for _, test := range tests {
		for _, id := range test.IDs() {
			all[id] = append(all[id], test)
		}
	}
	return all
}

// RunName is the test's name as `go test` reports it, below that of its parent.
func (t Test) RunName() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, t.Name)
}
