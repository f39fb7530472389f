// SPDX-License-Identifier: Apache-2.0

package references

import (
	"regexp"
	"slices"
	"strings"
)

// Reference is an id of one page that a text names.
type Reference struct {
	// Word is DESIGN, ASSISTED, METAL3, CONTRACT, ADR or recording.
	Word string
	// ID is in lower case: "d8", "8.8 rule 5", "m3-4", "boot-21", "3". It is empty when no id follows the word.
	ID string
}

// The forms of ids. A list of them follows its word: DESIGN D4, D5 and D8; ASSISTED fact 3, 8.8 rule 5.
const (
	decision = `D\d+`
	service  = `(?:[Ff]acts? )?\d+(?:\.\d+)?[a-f]?(?: rule \d+)?`
	metal3   = `M3-\d+`
	comma    = `(?:, | and |; | to |…|-)`
)

var (
	// rules are the beginnings of the ids of Cluster API's rules.
	rules = []string{"BOOT", "CP", "CTL", "OP", "CORE", "KCP", "E2E", "LIB", "QUAL"}

	// All patterns that a text is searched for begin with a letter or a sign, and matches checks what is before it. So the regular expression
	// jumps from one such letter to the next; a \b in front would make it try every byte of the repository.

	// listed has a word and the ids after it, if any.
	listed = map[string][]*regexp.Regexp{
		"DESIGN":   {list(`DESIGN`, decision)},
		"ASSISTED": {list(`ASSISTED`, service)},
		"METAL3":   {list(`METAL3`, metal3)},
		"CONTRACT": {list(`CONTRACT`, `(?:`+strings.Join(rules, "|")+`)-\d+`)},
		"ADR":      compile(`ADRs? (\d+)`, `adr/(\d+)`),
	}
	// alone are the ids that are unmistakable without a word.
	alone = map[string][]*regexp.Regexp{
		"ASSISTED":  compile(`facts? \d+\b`, `Facts? \d+\b`),
		"METAL3":    compile(metal3 + `\b`),
		"CONTRACT":  compile(each(rules, `-\d+\b`)...),
		"recording": compile(`trace [a-z0-9]+(?:-[A-Za-z0-9]+)+\b`),
	}
	// bare are decisions and ranges of them without a word. What is before and after them tells them from parts of addresses, of names and of
	// test data: D4:9F, D4.md, "D4".
	bare = regexp.MustCompile(`(D\d{1,2}(?:(?:-|…)D\d{1,2})*)(?:[ ),;*?!'\]]|[.:][ )*])`)
	// ruleOfSection is an id of ASSISTED that begins with any digit.
	ruleOfSection = regexp.MustCompile(`\b\d+\.\d+ rule \d+\b`)

	ids = map[string]*regexp.Regexp{
		"DESIGN":    regexp.MustCompile(decision),
		"ASSISTED":  regexp.MustCompile(service),
		"METAL3":    regexp.MustCompile(metal3),
		"CONTRACT":  regexp.MustCompile(`(?:` + strings.Join(rules, "|") + `)-\d+`),
		"ADR":       regexp.MustCompile(`\d+`),
		"recording": regexp.MustCompile(`[a-z0-9]+(?:-[A-Za-z0-9]+)+`),
	}
	// elsewhere names pages that this repository does not have, and sections, which no page numbers.
	elsewhere = slices.Concat(
		compile(each([]string{"STYLE", "LIFECYCLE", "PEER", "ECOSYSTEM", "SCALE", "BUILD"}, `(?:\.md\b|,? (?:rule|fact|§|\d))`)...),
		compile(`§ ?\d`),
		compile(each([]string{"DESIGN", "ASSISTED", "METAL3", "CONTRACT"}, `\.md\b`)...),
	)
	// marks begin a line of a comment, a quotation or a list.
	marks = []string{"//", "#", ">", "*"}
)

// list matches a word in capitals and the ids after it, if any. The word is not part of a name such as CONTRACT_PACKAGES.
func list(word, id string) *regexp.Regexp {
	return regexp.MustCompile(word + `\b(?: (` + id + `(?:` + comma + id + `)*))?`)
}

// each returns a pattern for every word.
func each(words []string, rest string) []string {
	patterns := make([]string, 0, len(words))
	for _, word := range words {
		patterns = append(patterns, word+rest)
	}
	return patterns
}

func compile(patterns ...string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, 0, len(patterns))
	for _, pattern := range patterns {
		compiled = append(compiled, regexp.MustCompile(pattern))
	}
	return compiled
}

// Find returns the references of a text, and the places where it refers to what this repository does not have.
func Find(text string) (found []Reference, nowhere []string) {
	text = joined(text)
	for word, patterns := range listed {
		for _, match := range matches(text, patterns...) {
			if word != "ADR" && isName(text, match[0], match[0]+len(word)) {
				continue
			}
			found = append(found, parse(word, text[match[0]+len(word):match[1]])...)
		}
	}
	for word, patterns := range alone {
		for _, match := range matches(text, patterns...) {
			found = append(found, parse(word, text[match[0]:match[1]])...)
		}
	}
	for _, match := range matches(text, bare) {
		if match[0] == 0 || strings.IndexByte(" ([*\"'`", text[match[0]-1]) >= 0 {
			found = append(found, parse("DESIGN", text[match[2]:match[3]])...)
		}
	}
	if strings.Contains(text, " rule ") {
		for _, id := range ruleOfSection.FindAllString(text, -1) {
			found = append(found, parse("ASSISTED", id)...)
		}
	}
	for _, match := range matches(text, elsewhere...) {
		nowhere = append(nowhere, text[match[0]:match[1]])
	}
	return found, nowhere
}

// joined returns a text in one line, in which a sentence goes on where a line ended, also that of a comment. Its last byte is a blank.
func joined(text string) string {
	var all strings.Builder
	all.Grow(len(text))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, mark := range marks {
			if rest, marked := strings.CutPrefix(line, mark); marked {
				line = strings.TrimSpace(rest)
				break
			}
		}
		if line != "" {
			all.WriteString(line)
			all.WriteByte(' ')
		}
	}
	return all.String()
}

// matches returns where the patterns match, with their groups, and not in the middle of a word.
func matches(text string, patterns ...*regexp.Regexp) [][]int {
	found := make([][]int, 0, len(patterns))
	for _, pattern := range patterns {
		found = append(found, pattern.FindAllStringSubmatchIndex(text, -1)...)
	}
	return slices.DeleteFunc(found, func(match []int) bool {
		return match[0] > 0 && isWord(text[match[0]]) && isWord(text[match[0]-1])
	})
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// isName reports whether the word between start and end is the name of a variable, as in METAL3=v1beta1 and $(METAL3), and no reference.
func isName(text string, start, end int) bool {
	before, after := text[:start], text[end:]
	return strings.HasPrefix(after, "=") || strings.HasSuffix(before, "$(") || strings.HasSuffix(before, "${")
}

// parse returns the ids of a list, or one empty id. "facts 1 and 5" are two facts.
func parse(word, list string) []Reference {
	var found []Reference
	fact := false
	for _, id := range ids[word].FindAllString(list, -1) {
		id = strings.Replace(strings.ToLower(id), "facts ", "fact ", 1)
		fact = strings.HasPrefix(id, "fact ") || fact && !strings.Contains(id, ".")
		if fact && !strings.HasPrefix(id, "fact ") {
			id = "fact " + id
		}
		if word == "ADR" {
			id = strings.TrimLeft(id, "0")
		}
		found = append(found, Reference{word, id})
	}
	if found == nil {
		found = append(found, Reference{Word: word})
	}
	return found
}
