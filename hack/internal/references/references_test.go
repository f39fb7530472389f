// SPDX-License-Identifier: Apache-2.0

package references

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../../.."

// TestEveryReferenceIsExplained reads code, documents, templates and configuration: a reader can look up every id in this repository.
func TestEveryReferenceIsExplained(t *testing.T) {
	g := NewWithT(t)
	known, err := Known(root)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(eachFile(func(path, text string) { checkText(t, path, text, known) })).
		To(BeNumerically(">", 500), "the walk does not see the repository")
}

// eachFile calls visit with every file of this project's text, and returns how many there are.
func eachFile(visit func(path, text string)) (files int, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return skip(path, entry, err)
		}
		if !isText(path) {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		visit(path, string(text))
		return err
	})
	return files, err
}

// skip leaves out what is not this project's text: hidden folders, recordings, and what make writes into bin and out.
func skip(path string, entry fs.DirEntry, err error) error {
	name := entry.Name()
	hidden := strings.HasPrefix(name, ".") && path != root && name != ".ci"
	if err == nil && (hidden || slices.Contains([]string{"testdata", "bin", "out"}, name) || strings.HasSuffix(path, "internal/references")) {
		return filepath.SkipDir
	}
	return err
}

func isText(path string) bool {
	name := filepath.Base(path)
	return slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".sh"}, filepath.Ext(name)) ||
		strings.HasPrefix(name, "Dockerfile") || name == "Makefile" || name == "run"
}

func checkText(t *testing.T, path, text string, known map[string]map[string]bool) {
	t.Helper()
	found, elsewhere := Find(text)
	for _, reference := range found {
		if reference.ID == "" {
			t.Errorf("%s names %s without an id: say the reason, or which id is meant", path, reference.Word)
			continue
		}
		if !known[reference.Word][reference.ID] {
			t.Errorf("%s refers to %s %s, which %s does not have", path, reference.Word, reference.ID, pages[reference.Word].path)
		}
	}
	for _, place := range elsewhere {
		t.Errorf("%s refers to %q, which is nowhere in this repository: say the reason instead", path, place)
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []Reference
		elsewhere  []string
	}{
		{name: "one decision", text: "// x (DESIGN D8).", want: []Reference{{"DESIGN", "d8"}}},
		{name: "a list", text: "(DESIGN D4, D19)", want: []Reference{{"DESIGN", "d4"}, {"DESIGN", "d19"}}},
		{name: "a range", text: "(DESIGN D6-D8)", want: []Reference{{"DESIGN", "d6"}, {"DESIGN", "d8"}}},
		{name: "two pages, over two lines", text: "\t// (DESIGN D21, METAL3\n\t// M3-61)",
			want: []Reference{{"DESIGN", "d21"}, {"METAL3", "m3-61"}}},
		{name: "facts", text: "(ASSISTED facts 1 and 5)", want: []Reference{{"ASSISTED", "fact 1"}, {"ASSISTED", "fact 5"}}},
		{name: "a fact and a rule", text: "ASSISTED fact 3, 8.8 rule 5", want: []Reference{{"ASSISTED", "fact 3"}, {"ASSISTED", "8.8 rule 5"}}},
		{name: "sections", text: "ASSISTED 1.2, 8.5c", want: []Reference{{"ASSISTED", "1.2"}, {"ASSISTED", "8.5c"}}},
		{name: "a rule without a word", text: `t.Run("CP-70 x")`, want: []Reference{{"CONTRACT", "cp-70"}}},
		{name: "a decision record", text: "docs/adr/0002-x.md", want: []Reference{{"ADR", "2"}}},
		{name: "a fact without a word", text: "(fact 6)", want: []Reference{{"ASSISTED", "fact 6"}}},
		{name: "a recording", text: "(trace late-1a-hold-bind)", want: []Reference{{"recording", "late-1a-hold-bind"}}},
		{name: "a decision without a word", text: "as D15 says (D4)", want: []Reference{{"DESIGN", "d15"}, {"DESIGN", "d4"}}},
		{name: "a range without a word", text: "`**D23 to D36**, D6-D8.", want: []Reference{
			{"DESIGN", "d23"}, {"DESIGN", "d36"}, {"DESIGN", "d6"}, {"DESIGN", "d8"},
		}},
		{name: "a list over two lines of a comment", text: "// so (DESIGN D6,\n// D19).", want: []Reference{{"DESIGN", "d19"}, {"DESIGN", "d6"}}},
		{name: "addresses, names and data with a D", text: "D4:9F:D2 0xD3 D5.md a-D6-b \"D7\" `D8` D100 D9_x ID10 Standard_D11"},
		{name: "no id", text: "as ASSISTED says", want: []Reference{{Word: "ASSISTED"}}},
		{name: "no id in brackets", text: "so (METAL3)", want: []Reference{{Word: "METAL3"}}},
		{name: "no id in quotes", text: "see `DESIGN`: it", want: []Reference{{Word: "DESIGN"}}},
		{name: "names of variables", text: "CONTRACT_PACKAGES METAL3=v1beta1 $(METAL3) ${METAL3}"},
		{name: "pages that are nowhere", text: "(STYLE 1.3) and §4", elsewhere: []string{"STYLE 1", "§4"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			found, elsewhere := Find(test.text)
			g.Expect(unique(found)).To(ConsistOf(test.want))
			g.Expect(elsewhere).To(Equal(test.elsewhere))
		})
	}
}

// unique drops what was found by its word and alone.
func unique(references []Reference) []Reference {
	slices.SortFunc(references, func(a, b Reference) int { return strings.Compare(a.Word+a.ID, b.Word+b.ID) })
	return slices.Compact(references)
}
