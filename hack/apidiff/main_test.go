// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestComparison compares a small module with its only commit. A program in the place of apidiff shows how it was called, and says what the
// test wants it to say.
func TestComparison(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	t.Chdir(root)
	t.Setenv("GOFLAGS", "-mod=mod")
	for name, content := range map[string]string{
		"go.mod": "module example.com/module\n\ngo 1.26.0\n", "go.sum": "", "api/a/a.go": "package a\n", "api/b/b.go": "package b\n",
		"api/doc_test.go": "package api\n",
		"tool":            "#!/bin/sh\necho \"$@\" >>" + root + "/calls\nif [ \"$1\" = -incompatible ]; then cat " + root + "/says; fi\n",
	} {
		g.Expect(os.MkdirAll(filepath.Dir(name), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(name, []byte(content), 0o755)).To(Succeed())
	}
	git := func(args ...string) {
		command := append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)
		printed, err := exec.CommandContext(t.Context(), "git", command...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(printed))
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message=first")
	says := func(text string) { g.Expect(os.WriteFile("says", []byte(text), 0o600)).To(Succeed()) }
	printed := &bytes.Buffer{}
	c := comparison{out: printed, tool: root + "/tool", base: "HEAD"}

	says("")
	g.Expect(c.run(t.Context())).To(Succeed())
	g.Expect(printed.String()).To(Equal("2 packages are compatible with HEAD\n"))
	calls, err := os.ReadFile("calls")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(string(calls), "\n")).To(Equal(4), string(calls))

	says("- A: removed")
	g.Expect(c.run(t.Context())).To(MatchError(ContainSubstring("not compatible")))
	g.Expect(printed.String()).To(ContainSubstring("example.com/module/api/a, since HEAD:\n- A: removed"))

	says("")
	g.Expect(os.RemoveAll("api/b")).To(Succeed())
	g.Expect(c.run(t.Context())).To(MatchError(ContainSubstring("not compatible")))
	g.Expect(printed.String()).To(ContainSubstring("api/b, since HEAD:\nthe package is gone"))

	c.base = "gone"
	g.Expect(c.run(t.Context())).To(MatchError(ContainSubstring("revision gone is not in the history")))
	c.base = ""
	g.Expect(c.run(t.Context())).To(MatchError(ContainSubstring(revisionFile)))
}
