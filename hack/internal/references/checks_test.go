// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// leftOut is the section of docs/development.md that has what .ci/run has not.
const leftOut = "## What continuous integration leaves out\n"

var (
	section = regexp.MustCompile(`^##@ (.+)`)
	target  = regexp.MustCompile(`^([a-z0-9-]+):.*##`)
	// makes are the commands of a script or of a page, and loops the targets that a script makes one after the other.
	makes = regexp.MustCompile(`\bmake ([a-z0-9-]+)`)
	loops = regexp.MustCompile(`for target in ([^;]+);`)
)

// TestChecks: whatever the Makefile checks, continuous integration runs it, or the page says why not.
func TestChecks(t *testing.T) {
	g := NewWithT(t)
	read := func(path string) string {
		data, err := os.ReadFile(filepath.Join(root, path))
		g.Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	makefile, script, page := read("Makefile"), read(".ci/run"), read("docs/development.md")
	_, rest, found := strings.Cut(page, leftOut)
	g.Expect(found).To(BeTrue(), "docs/development.md has no section %q", leftOut)
	text, _, _ := strings.Cut(rest, "\n## ")
	g.Expect(unlisted(makefile, script, text)).To(BeEmpty(), "neither .ci/run nor docs/development.md has them")
	all := targetsOf(makefile, func(string, string) bool { return true })
	for _, name := range append(made(script), made(text)...) {
		g.Expect(all).To(ContainElement(name), "the Makefile has no such target")
	}
}

// unlisted are the checks of a Makefile that neither a script makes nor a text names.
func unlisted(makefile, script, text string) []string {
	listed := append(made(script), made(text)...)
	return slices.DeleteFunc(targetsOf(makefile, isCheck), func(name string) bool { return slices.Contains(listed, name) })
}

// isCheck reports whether a target fails for what is wrong: those of the sections that have tests and checks, and some of others.
func isCheck(section, name string) bool {
	switch section {
	case "Test":
		return true
	case "Generate and check":
		return name != "generate" && name != "format"
	}
	return slices.Contains([]string{"book", "scale", "vulncheck"}, name) || strings.HasPrefix(name, "test") || strings.HasPrefix(name, "e2e")
}

// targetsOf are the targets of a Makefile that have a line of help, as wanted by their section and name.
func targetsOf(makefile string, wanted func(section, name string) bool) []string {
	var names []string
	in := ""
	for line := range strings.Lines(makefile) {
		if match := section.FindStringSubmatch(line); match != nil {
			in = match[1]
		}
		if match := target.FindStringSubmatch(line); match != nil && wanted(in, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// made are the targets that a text makes, in commands and in loops.
func made(text string) []string {
	var names []string
	for _, match := range makes.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	for _, match := range loops.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.Fields(match[1])...)
	}
	return names
}

func TestUnlisted(t *testing.T) {
	const makefile = "##@ Build\nbuild: ## Build.\nvulncheck: ## Look.\n##@ Generate and check\ngenerate: ## Write.\nlint: ## Lint.\n" +
		"##@ Test\ntest: ## Test.\ntest-new: lint ## Test more.\nwithout-help:\n##@ Sandbox\nsandbox: ## Play.\ne2e-new: ## Run.\n"
	for name, tt := range map[string]struct {
		script, text string
		want         []string
	}{
		"nothing is listed": {want: []string{"vulncheck", "lint", "test", "test-new", "e2e-new"}},
		"a command and a loop": {
			script: "for target in test e2e-new; do\n\tmake \"$target\"\ncheck make lint\n", want: []string{"vulncheck", "test-new"},
		},
		"a part of another name": {
			script: "make test-newer\nmake linter", text: "| `make vulncheck DB=folder` |",
			want: []string{"lint", "test", "test-new", "e2e-new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(unlisted(makefile, tt.script, tt.text)).To(Equal(tt.want))
		})
	}
}
