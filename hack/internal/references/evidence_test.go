// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	conventionRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\S+) \| ([^|]+) \|$`)
	quoted        = regexp.MustCompile("`([^`]+)`")
	// named is a file, a test or a target of make, and no flag, annotation or file of a release.
	named     = regexp.MustCompile(`^(?:make [a-z0-9-]+|Test[A-Z]\w*|[A-Za-z.]+(?:/[\w.-]+)*)$`)
	testNames = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	targets   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// TestConventions looks for everything by which the page of conventions says that one can see what it claims.
func TestConventions(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/conventions.md"))
	g.Expect(err).NotTo(HaveOccurred())
	evidence := newEvidence(t)
	rows := conventionRow.FindAllStringSubmatch(strings.ReplaceAll(string(page), "|---|---|---|", ""), -1)
	g.Expect(len(rows)).To(BeNumerically(">", 40), "the rows are not found")
	for _, row := range rows[1:] {
		if row[2] == "here" {
			continue // the head of the second table
		}
		for _, problem := range evidence.problems(row[2], row[3]) {
			t.Errorf("%s: %s", row[1], problem)
		}
	}
}

// evidence is what a page can refer to.
type evidence struct{ tests, targets map[string]bool }

func newEvidence(t *testing.T) evidence {
	t.Helper()
	e := evidence{tests: map[string]bool{}, targets: map[string]bool{}}
	_, err := eachFile(func(path, text string) {
		switch {
		case strings.HasSuffix(path, "_test.go"):
			add(e.tests, testNames, text)
		case filepath.Base(path) == "Makefile":
			add(e.targets, targets, text)
		}
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	e.tests["TestConventions"] = true // the walk leaves this folder out
	return e
}

func add(names map[string]bool, pattern *regexp.Regexp, text string) {
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
}

// problems returns what is wrong with a row: its mark, and evidence that is not there.
func (e evidence) problems(mark, text string) []string {
	var problems []string
	if mark != "Y" && mark != "~" && mark != "N" {
		problems = append(problems, "the mark "+mark+" is not Y, ~ or N")
	}
	found := 0
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		if !named.MatchString(match[1]) {
			continue
		}
		if e.exists(match[1]) {
			found++
		} else {
			problems = append(problems, match[1]+" does not exist")
		}
	}
	if mark == "Y" && found == 0 {
		problems = append(problems, "there is no evidence: name a file, a test or a target of make")
	}
	return problems
}

func (e evidence) exists(name string) bool {
	if target, isTarget := strings.CutPrefix(name, "make "); isTarget {
		return e.targets[target]
	}
	if strings.HasPrefix(name, "Test") {
		return e.tests[name]
	}
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil
}

func TestEvidence(t *testing.T) {
	e := evidence{tests: map[string]bool{"TestA": true}, targets: map[string]bool{"book": true}}
	for text, want := range map[string]string{
		"`make book`": "", "`TestA`, and `hack`": "", "`make gone`": "make gone does not exist", "`TestGone`": "TestGone does not exist",
		"`hack/gone.go`": "hack/gone.go does not exist", "`--flag` only": "no evidence", "nothing": "no evidence",
	} {
		t.Run(text, func(t *testing.T) {
			problems := strings.Join(e.problems("Y", text), "; ")
			if want == "" {
				NewWithT(t).Expect(problems).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(problems).To(ContainSubstring(want))
		})
	}
	g := NewWithT(t)
	g.Expect(e.problems("N", "nothing")).To(BeEmpty())
	g.Expect(e.problems("y", "`TestA`")).To(ConsistOf(ContainSubstring("the mark y")))
}

// versionRow is a row of the table of pinned modules.
var versionRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\| (v\\S+) \\|$")

// TestVersions compares the page of versions with what the modules pin.
func TestVersions(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/versions.md"))
	g.Expect(err).NotTo(HaveOccurred())
	pinned := pins(t)
	rows := versionRow.FindAllStringSubmatch(string(page), -1)
	g.Expect(len(rows)).To(BeNumerically(">", 8), "the rows are not found")
	for _, row := range rows {
		if !pinned[row[1]+" "+row[2]] {
			t.Errorf("no module pins %s %s", row[1], row[2])
		}
	}
}

// requirement is a line of a go.mod: a module, its version, and what says that only others need it.
var requirement = regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) (v\S+)( // indirect)?$`)

// requirements returns the lines of a go.mod that require a module.
func requirements(t *testing.T, path string) [][]string {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	found := requirement.FindAllStringSubmatch(string(text), -1)
	g.Expect(found).NotTo(BeEmpty(), path)
	return found
}

// pins returns what go.mod and the modules of the tools require: "module version". What only older API modules of others require, in
// hack/tools/crds, does not count but for these themselves.
func pins(t *testing.T) map[string]bool {
	t.Helper()
	g := NewWithT(t)
	found := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(root, "hack/tools/*/go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).NotTo(BeEmpty())
	for _, path := range append(paths, filepath.Join(root, "go.mod")) {
		for _, match := range requirements(t, path) {
			if !strings.Contains(path, "/crds/") || match[3] == "" {
				found[match[1]+" "+match[2]] = true
			}
		}
	}
	return found
}
