// SPDX-License-Identifier: Apache-2.0

package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The budgets on every Go file that is not generated.
const (
	maxFileLines     = 400
	maxFunctionLines = 60
	maxNesting       = 3
	// maxFields is for structs of the managers, which is where a pass keeps what it knows.
	maxFields = 20
	header    = "// SPDX-License-Identifier: Apache-2.0"
)

// TestLayout holds the whole repository to its budgets.
func TestLayout(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			checkLayout(t, path)
		}
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func checkLayout(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	if ast.IsGenerated(file) {
		return
	}
	if len(file.Comments) == 0 || file.Comments[0].List[0].Text != header {
		t.Errorf("%s does not begin with %q", path, header)
	}
	line := func(pos token.Pos) int { return files.Position(pos).Line }
	if lines := line(file.FileEnd); lines > maxFileLines {
		t.Errorf("%s has %d lines, at most %d are allowed: split it", path, lines, maxFileLines)
	}
	if isManager(path) {
		checkFields(t, path, file)
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		// Tables of tests are data.
		lines := line(function.End()) - line(function.Pos()) + 1
		if lines > maxFunctionLines && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s: %s has %d lines, at most %d are allowed", path, function.Name.Name, lines, maxFunctionLines)
		}
		if depth := nesting(function.Body); depth > maxNesting {
			t.Errorf("%s: %s is nested %d deep, at most %d is allowed: return early or name a part", path, function.Name.Name, depth, maxNesting)
		}
	}
}

// isManager reports whether a file is code of one of the managers, and no test.
func isManager(path string) bool {
	inside := strings.HasPrefix(path, filepath.Join("..", "bootstrap")) || strings.HasPrefix(path, filepath.Join("..", "controlplane"))
	return inside && !strings.HasSuffix(path, "_test.go")
}

func checkFields(t *testing.T, path string, file *ast.File) {
	t.Helper()
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if fields, ok := spec.Type.(*ast.StructType); ok && fields.Fields.NumFields() > maxFields {
			t.Errorf("%s: struct %s has %d fields, at most %d are allowed: split it by subject", path, spec.Name.Name,
				fields.Fields.NumFields(), maxFields)
		}
		return true
	})
}

// nesting returns how deep the statements below a node branch and loop. An else-if is as deep as its if, and the body of
// a function literal begins at no depth.
func nesting(node ast.Node) int {
	deepest := 0
	ast.Inspect(node, func(child ast.Node) bool {
		if child == nil || child == node {
			return true
		}
		var inner int
		switch typed := child.(type) {
		case *ast.FuncLit:
			inner = nesting(typed.Body)
		case *ast.IfStmt:
			inner = ifNesting(typed)
		case *ast.ForStmt:
			inner = 1 + nesting(typed.Body)
		case *ast.RangeStmt:
			inner = 1 + nesting(typed.Body)
		case *ast.SwitchStmt:
			inner = 1 + nesting(typed.Body)
		case *ast.TypeSwitchStmt:
			inner = 1 + nesting(typed.Body)
		case *ast.SelectStmt:
			inner = 1 + nesting(typed.Body)
		default:
			return true
		}
		deepest = max(deepest, inner)
		return false
	})
	return deepest
}

func ifNesting(statement *ast.IfStmt) int {
	deepest := 1 + nesting(statement.Body)
	switch otherwise := statement.Else.(type) {
	case *ast.IfStmt:
		deepest = max(deepest, ifNesting(otherwise))
	case *ast.BlockStmt:
		deepest = max(deepest, 1+nesting(otherwise))
	}
	return deepest
}
