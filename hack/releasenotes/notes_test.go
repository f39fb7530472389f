// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCategory(t *testing.T) {
	for file, want := range map[string]string{
		"api/bootstrap/v1beta1/boot_types.go":       "API",
		"config/bootstrap/crd/bases/x.yaml":         "API",
		"api/layout_test.go":                        "Tests and development",
		"internal/manager/flags.go":                 "Behaviour of the managers",
		"controlplane/internal/plan/testdata/x.yml": "Tests and development",
		"config/common/manager/manager.yaml":        "Installation and templates",
		"Dockerfile.bootstrap":                      "Installation and templates",
		"hack/tools/dev/go.mod":                     "Dependencies",
		"docs/faq.md":                               "Documentation",
		"docs/pictures/parts.svg":                   "Documentation",
		"hack/book/main.go":                         "Tests and development",
		"test/e2e/suite_test.go":                    "Tests and development",
	} {
		t.Run(file, func(t *testing.T) {
			NewWithT(t).Expect(categories[category(commit{files: []string{file}})].title).To(Equal(want))
		})
	}
	g := NewWithT(t)
	g.Expect(category(commit{files: []string{"docs/faq.md", "test/x.go", "api/a/b.go"}})).To(Equal(0), "the first category counts")
	g.Expect(category(commit{})).To(Equal(len(categories)-1), "a commit without files")
}

// TestNotes writes the notes of a small history.
func TestNotes(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	run := func(args ...string) {
		command := append([]string{
			"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false",
		}, args...)
		printed, err := exec.CommandContext(t.Context(), "git", command...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(printed))
	}
	change := func(message string, files map[string]string) {
		for name, content := range files {
			g.Expect(os.MkdirAll(filepath.Dir(name), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(name, []byte(content), 0o600)).To(Succeed())
		}
		run("add", ".")
		run("commit", "--quiet", "--message="+message)
	}
	run("init", "--quiet")
	change("The first", map[string]string{"docs/release-notes.md": "# R\n\n## New\n\n- one\n"})
	g.Expect(write(t.Context(), "", "HEAD")).To(And(
		ContainSubstring("from the first commit to HEAD"), ContainSubstring("## New\n\n- one\n"), ContainSubstring("- The first (")))

	run("tag", "v0.1.0")
	change("A field", map[string]string{"api/a.go": "package a\n"})
	change("A note", map[string]string{
		"docs/release-notes.md": "# R\n\n## Before you update\n\n- look\n  twice\n\n## New\n\n- one\n- two\n\nand no item\n",
	})
	notes, err := write(t.Context(), "", "HEAD")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(MatchRegexp(`^# Changes from v0.1.0 to HEAD

## Before you update

- look
  twice

## New

- two

## API

- A field \([0-9a-f]+\)

## Documentation

- A note \([0-9a-f]+\)
$`))
	_, err = write(t.Context(), "gone", "HEAD")
	g.Expect(err).To(MatchError(ContainSubstring("gone..HEAD")))
}
