// SPDX-License-Identifier: Apache-2.0

package references

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var library = regexp.MustCompile("(?m)^\\| (LIB-\\d+) \\| `([^`]+)` \\| (managers|tests|nobody) \\|")

// TestLibraries compares the table of Cluster API's libraries with what is imported.
func TestLibraries(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(root, pages["CONTRACT"].path))
	g.Expect(err).NotTo(HaveOccurred())
	rows := library.FindAllStringSubmatch(string(text), -1)
	g.Expect(rows).To(HaveLen(27))
	users := importers(t)
	for _, row := range rows {
		used := "nobody"
		for path, user := range users {
			path, below := strings.CutPrefix(path, "sigs.k8s.io/cluster-api/"+row[2])
			exact := path == "" || strings.Contains(row[2], "/client") || strings.HasPrefix(row[2], "core/")
			if below && exact && used != "managers" {
				used = user
			}
		}
		if used != row[3] {
			t.Errorf("%s says of %s that it is used by %s, but it is used by %s", row[1], row[2], row[3], used)
		}
	}
}

// importers tells of every imported path whether managers use it, or tests only.
func importers(t *testing.T) map[string]string {
	t.Helper()
	users := map[string]string{}
	NewWithT(t).Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return skip(path, entry, err)
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		user := userOf(path)
		for _, imported := range file.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			if users[name] != "managers" {
				users[name] = user
			}
		}
		return nil
	})).To(Succeed())
	return users
}

// userOf tells whether a file belongs to the managers.
func userOf(path string) string {
	folder, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(path), root+"/"), "/")
	if folder == "test" || folder == "hack" || strings.HasSuffix(path, "_test.go") {
		return "tests"
	}
	return "managers"
}
