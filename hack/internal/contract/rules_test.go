// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../../.."

func TestCheck(t *testing.T) {
	good := Rule{ID: "BOOT-1", Mark: Mandatory, Rule: "Something holds.", Verdict: Met}
	later := Rule{ID: "CP-53", Mark: Mandatory, Rule: "Something holds.", Verdict: Later, Reason: "It is much work."}
	tests := []struct {
		name  string
		spoil func(*Rule)
		rule  Rule
		want  string
	}{
		{name: "a rule that is met", rule: good},
		{name: "a rule that may be met later", rule: later},
		{name: "an unknown family", rule: good, spoil: func(r *Rule) { r.ID = "QUAL-1" }, want: "no rule id"},
		{name: "an unknown mark", rule: good, spoil: func(r *Rule) { r.Mark = "M*" }, want: `mark "M*"`},
		{name: "no verdict", rule: good, spoil: func(r *Rule) { r.Verdict, r.Reason = "", "Forgotten." }, want: `verdict ""`},
		{name: "no sentence", rule: good, spoil: func(r *Rule) { r.Rule = "" }, want: "does not say"},
		{name: "declined without a reason", rule: good, spoil: func(r *Rule) { r.Verdict = Declined }, want: "needs a reason"},
		{name: "met with a reason", rule: good, spoil: func(r *Rule) { r.Reason = "Because." }, want: "needs a reason"},
		{name: "postponed without leave", rule: later, spoil: func(r *Rule) { r.ID = "CP-52" }, want: "may be met later"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			rule := tt.rule
			if tt.spoil == nil {
				g.Expect(check([]Rule{rule})).To(BeEmpty())
				return
			}
			tt.spoil(&rule)
			g.Expect(check([]Rule{rule})).To(ConsistOf(ContainSubstring(tt.want)))
		})
	}
	NewWithT(t).Expect(check([]Rule{good, good})).To(ConsistOf("BOOT-1 is there twice"))
}

// TestTableIsComplete compares the table with the list of all rules and how binding they are: an entry that was lost or made optional shows
// only by such a list.
func TestTableIsComplete(t *testing.T) {
	g := NewWithT(t)
	rules, err := Load(root)
	g.Expect(err).NotTo(HaveOccurred())
	var have []string
	for _, rule := range rules {
		have = append(have, fmt.Sprintf("%s %s", rule.ID, rule.Mark))
	}
	list, err := os.ReadFile(filepath.Join("testdata", "rules.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	_, list, _ = bytes.Cut(list, []byte("\n")) // The first line says what it is.
	g.Expect(have).To(ConsistOf(strings.Split(strings.TrimSpace(string(list)), "\n")))
}

// TestNamesOfTests checks that every test is named after rules that exist, and that every rule that is met has a test.
func TestNamesOfTests(t *testing.T) {
	g := NewWithT(t)
	rules, err := Load(root)
	g.Expect(err).NotTo(HaveOccurred())
	tests, err := FindTests(root)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(UnknownIDs(rules, tests)).To(BeEmpty())
	byRule := ByRule(tests)
	for _, rule := range rules {
		if rule.Verdict == Met && len(byRule[rule.ID]) == 0 {
			t.Errorf("%s is said to be met and no test is named after it", rule.ID)
		}
	}
}
