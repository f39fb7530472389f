// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestBook builds the book of this repository: every page is in the table of contents, once, and every link leads somewhere.
func TestBook(t *testing.T) {
	g := NewWithT(t)
	b, err := load("../..")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(b.pages)).To(BeNumerically(">", 60), "the walk does not see the pages")
	out := filepath.Join(t.TempDir(), "book")
	g.Expect(b.write(out)).To(Succeed())
	g.Expect(b.write(out)).To(Succeed(), "an earlier book is replaced")
	for _, p := range b.pages {
		g.Expect(filepath.Join(out, p.output())).To(BeARegularFile())
	}
	start, err := os.ReadFile(filepath.Join(out, "docs", "guides", "quick-start.html"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(start)).To(And(
		ContainSubstring(`<a href="quick-start.html" aria-current="page">`), ContainSubstring(`<a href="../../index.html">`),
		ContainSubstring("<details open>\n<summary>Start</summary>"), ContainSubstring("<details>\n<summary>Reference</summary>"),
		ContainSubstring(`href="install.html#kubectl"`), ContainSubstring(sources+"tree/main/templates"),
		Not(ContainSubstring("<script"))))
}

// repository writes files below a folder.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		NewWithT(t).Expect(writeFile(filepath.Join(root, name), []byte(content))).To(Succeed())
	}
	return root
}

// TestProblems breaks a small book in every way.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		contents, page string
		more           map[string]string
		want           string
	}{
		"nothing":          {page: "# A\n\n[self](#a) [home](README.md#part) [file](../go.mod) [folder](guides) [web](https://example.com/#y)\n"},
		"a file":           {page: "# A\n\n[gone](b.md)\n", want: "docs/a.md: link to b.md: stat docs/b.md"},
		"an anchor":        {page: "# A\n\n[gone](#b)\n", want: "docs/a.md has no heading with the anchor b"},
		"one of another":   {page: "# A\n\n[gone](README.md#b)\n", want: "docs/README.md has no heading with the anchor b"},
		"a picture":        {page: "# A\n\n![gone](a.svg)\n", want: "link to a.svg"},
		"out of the root":  {page: "# A\n\n[out](../../x)\n", want: "link to ../../x"},
		"from the root":    {page: "# A\n\n[root](/docs/a.md)\n", want: "leads to the root of the site"},
		"two titles":       {page: "# A\n\n# B\n", want: "docs/a.md has 2 headings of the first level"},
		"no title":         {page: "A\n", want: "docs/a.md has 0 headings"},
		"twice":            {contents: "# C\n\n## Part\n\n- [A](a.md)\n- [A](a.md)\n", page: "# A\n", want: "lists docs/a.md twice"},
		"a missing page":   {contents: "# C\n\n## Part\n\n- [A](a.md)\n- [B](b.md)\n", page: "# A\n", want: "docs/b.md"},
		"an unlisted page": {page: "# A\n", more: map[string]string{"docs/guides/c.md": "# C\n"}, want: "does not list docs/guides/c.md"},
		"one of the root":  {page: "# A\n", more: map[string]string{"NEWS.md": "# N\n"}, want: "does not list NEWS.md"},
		"before a part":    {contents: "# C\n\n- [A](a.md)\n", page: "# A\n", want: "before the first part"},
		"no part":          {contents: "# C\n", page: "# A\n", want: "has no parts"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			files := map[string]string{"docs/README.md": test.contents, "docs/a.md": test.page, "go.mod": "", "docs/guides/x.txt": ""}
			if test.contents == "" {
				files["docs/README.md"] = "# C\n\n## Part\n\n- [A](a.md)\n"
			}
			for name, content := range test.more {
				files[name] = content
			}
			_, err := load(repository(t, files))
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// TestAnchors compares anchors with those that GitHub makes.
func TestAnchors(t *testing.T) {
	g := NewWithT(t)
	p := &page{anchors: map[string]bool{}}
	for _, title := range []string{"A host's `BMC`, and more", "Ünder_score - dash", "1.5 AgentServiceConfig", "Twice", "Twice"} {
		p.anchor(title)
	}
	g.Expect(p.anchors).To(HaveLen(5))
	for _, anchor := range []string{"a-hosts-bmc-and-more", "ünder_score---dash", "15-agentserviceconfig", "twice", "twice-1"} {
		g.Expect(p.anchors).To(HaveKey(anchor))
	}
}

func TestOtherFoldersStay(t *testing.T) {
	out := repository(t, map[string]string{"mine.txt": ""})
	g := NewWithT(t)
	g.Expect(removeBook(out)).To(MatchError(ContainSubstring("no book")))
	g.Expect(filepath.Join(out, "mine.txt")).To(BeAnExistingFile())
}
