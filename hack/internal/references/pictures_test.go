// SPDX-License-Identifier: Apache-2.0

package references

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	// pictured is a picture and the text that it draws.
	pictured = regexp.MustCompile("(?s)!\\[[^\\]]*\\]\\(([^)]+\\.svg)\\)\n\n<details>\n[^\n]*\n\n```mermaid\n(.*?)```")
	// wordings are the forms of what is written in a diagram: beside an arrow, in a box, on a note.
	wordings = regexp.MustCompile(`(?m)(?::|\bparticipant \w+ as|\balt|\belse) (.+)$|"([^"]+)"`)
	markup   = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]+>`)
)

// TestPictures compares every picture with the text below it: what the text says is in the picture.
func TestPictures(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/design/architecture.md"))
	g.Expect(err).NotTo(HaveOccurred())
	found := pictured.FindAllStringSubmatch(string(page), -1)
	g.Expect(found).To(HaveLen(strings.Count(string(page), "```mermaid")), "every diagram has a picture")
	g.Expect(found).To(HaveLen(3))
	for _, picture := range found {
		drawing, err := os.ReadFile(filepath.Join(root, "docs/design", picture[1]))
		g.Expect(err).NotTo(HaveOccurred())
		texts := labels(picture[2])
		g.Expect(len(texts)).To(BeNumerically(">", 10), picture[1])
		for _, missing := range undrawn(texts, string(drawing)) {
			t.Errorf("%s does not say %q: draw it, or change the text", picture[1], missing)
		}
	}
}

// labels returns what a diagram says.
func labels(diagram string) []string {
	var found []string
	for _, match := range wordings.FindAllStringSubmatch(diagram, -1) {
		label := strings.TrimSuffix(match[1]+match[2], " {")
		found = append(found, strings.Join(strings.Fields(strings.ReplaceAll(label, "<br/>", " ")), " "))
	}
	return found
}

// undrawn returns the labels that a picture does not have. A label may be in several lines there.
func undrawn(labels []string, drawing string) []string {
	text := html.UnescapeString(strings.Join(strings.Fields(markup.ReplaceAllString(drawing, " ")), " "))
	var missing []string
	for _, label := range labels {
		if !strings.Contains(text, label) {
			missing = append(missing, label)
		}
	}
	return missing
}

func TestUndrawn(t *testing.T) {
	g := NewWithT(t)
	said := labels("participant C as core\n  C->>B: one, two\n  x[\"a<br/>box\"]\n  a -- \"on it\" --> b\n  alt day 1\n")
	g.Expect(said).To(Equal([]string{"core", "one, two", "a box", "on it", "day 1"}))
	g.Expect(undrawn(said, "<text>core</text><text><tspan>one,</tspan><tspan>two</tspan></text>a box &#111;n it")).To(Equal([]string{"day 1"}))
}
