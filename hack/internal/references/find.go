// SPDX-License-Identifier: Apache-2.0

package references

import (
	"regexp"
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
var (
	decision = `D\d+`
	service  = `(?:[Ff]acts? )?\d+(?:\.\d+)?[a-f]?(?: rule \d+)?`
	metal3   = `M3-\d+`
	rule     = `(?:BOOT|CP|CTL|OP|CORE|KCP|E2E|LIB|QUAL)-\d+`
	comma    = `(?:, | and |; | to |…|-)`

	// lineBreak is what stands between two words of a text that goes on in the next line, also of a comment.
	lineBreak = regexp.MustCompile(`\s*\n\s*(?://|#|>|\*)?\s*`)
	// listed has a word, or "", and the ids after it.
	listed = map[string]*regexp.Regexp{
		"DESIGN":   list(`DESIGN`, decision),
		"ASSISTED": list(`ASSISTED`, service),
		"METAL3":   list(`METAL3`, metal3),
		"CONTRACT": list(`CONTRACT`, rule),
		"ADR":      regexp.MustCompile(`\bADRs? (\d+)|\badr/(\d+)`),
	}
	// alone are the ids that are unmistakable without a word.
	alone = map[string]*regexp.Regexp{
		"ASSISTED":  regexp.MustCompile(`\b[Ff]acts? \d+\b|\b\d+\.\d+ rule \d+\b`),
		"METAL3":    regexp.MustCompile(`\b` + metal3 + `\b`),
		"CONTRACT":  regexp.MustCompile(`\b` + rule + `\b`),
		"recording": regexp.MustCompile(`\btrace [a-z0-9]+(?:-[A-Za-z0-9]+)+\b`),
	}
	ids = map[string]*regexp.Regexp{
		"DESIGN":    regexp.MustCompile(decision),
		"ASSISTED":  regexp.MustCompile(service),
		"METAL3":    regexp.MustCompile(metal3),
		"CONTRACT":  regexp.MustCompile(rule),
		"ADR":       regexp.MustCompile(`\d+`),
		"recording": regexp.MustCompile(`[a-z0-9]+(?:-[A-Za-z0-9]+)+`),
	}
	// elsewhere names pages that this repository does not have, and sections, which no page numbers.
	elsewhere = regexp.MustCompile(
		`\b(?:STYLE|LIFECYCLE|PEER|ECOSYSTEM|SCALE|BUILD)(?:\.md\b|,? (?:rule|fact|§|\d))|§ ?\d|\b(?:DESIGN|ASSISTED|METAL3|CONTRACT)\.md\b`,
	)
)

// list matches a word in capitals and the ids after it, if any. The word is not part of a name such as CONTRACT_PACKAGES or METAL3=v1beta1.
func list(word, id string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + word + `\b(?: (` + id + `(?:` + comma + id + `)*))?`)
}

// Find returns the references of a text, and the places where it refers to what this repository does not have.
func Find(text string) ([]Reference, []string) {
	text = lineBreak.ReplaceAllString(text, " ")
	var found []Reference
	for word, pattern := range listed {
		for _, match := range pattern.FindAllStringSubmatchIndex(text, -1) {
			if word != "ADR" && isName(text, match[0]+len(word)) {
				continue
			}
			found = append(found, parse(word, text[match[0]+len(word):match[1]])...)
		}
	}
	for word, pattern := range alone {
		for _, id := range pattern.FindAllString(text, -1) {
			found = append(found, parse(word, id)...)
		}
	}
	return found, elsewhere.FindAllString(text, -1)
}

// isName reports whether the word that ends there is a name, as in METAL3=v1beta1, and no reference.
func isName(text string, end int) bool {
	return end < len(text) && strings.ContainsRune("=:)}|`\"", rune(text[end]))
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
