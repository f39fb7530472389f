// SPDX-License-Identifier: Apache-2.0

// Package contract reads the table of Cluster API's rules and finds the tests that are named after them.
package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// File is the table, relative to the repository's root.
const File = "docs/reference/contract.yaml"

// Families are the first parts of rule ids, in the table's order.
var Families = []string{"BOOT", "CP", "CTL", "OP", "CORE", "KCP", "E2E"}

// Mark says how binding a rule is.
type Mark string

// The marks. Mandatory and conditional rules are met wherever they apply.
const (
	Mandatory   Mark = "M"
	Conditional Mark = "C"
	Optional    Mark = "O"
	Behaviour   Mark = "B"
)

// Marks are all marks.
var Marks = []Mark{Mandatory, Conditional, Optional, Behaviour}

// Verdict says what the providers make of a rule.
type Verdict string

// The verdicts.
const (
	Met      Verdict = "met"
	Declined Verdict = "declined"
	Later    Verdict = "later"
)

// Verdicts are all verdicts.
var Verdicts = []Verdict{Met, Declined, Later}

// postponed are the rules that may be met later: a rotated kubeconfig, rollout, remediation and upgrade of control planes.
var postponed = []string{
	"CP-53", "CP-61", "CP-67",
	"KCP-6", "KCP-7", "KCP-9", "KCP-20", "KCP-24", "KCP-25", "KCP-26", "KCP-27", "KCP-28", "KCP-29",
	"E2E-24", "E2E-26",
}

var idPattern = regexp.MustCompile(`^(` + strings.Join(Families, "|") + `)-[1-9][0-9]*$`)

// Rule is one entry of the table.
type Rule struct {
	// ID is unique, a family and a number: BOOT-21.
	ID string `json:"id"`
	// Mark says how binding the rule is.
	Mark Mark `json:"mark"`
	// Rule is the rule in one sentence.
	Rule string `json:"rule"`
	// Verdict says what the providers make of it.
	Verdict Verdict `json:"verdict"`
	// Reason says why a rule is not met.
	Reason string `json:"reason,omitempty"`
}

// Family is the first part of the rule's id.
func (r Rule) Family() string {
	family, _, _ := strings.Cut(r.ID, "-")
	return family
}

// Load reads the table below the repository's root.
func Load(root string) ([]Rule, error) {
	data, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	var table struct {
		Rules []Rule `json:"rules"`
	}
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		return nil, fmt.Errorf("read the rules in %s: %w", File, err)
	}
	if problems := check(table.Rules); len(problems) > 0 {
		return nil, fmt.Errorf("correct the rules in %s: %s", File, strings.Join(problems, "; "))
	}
	return table.Rules, nil
}

// check lists what is wrong with the table.
func check(rules []Rule) []string {
	var problems []string
	seen := map[string]bool{}
	for _, rule := range rules {
		for _, problem := range rule.problems() {
			problems = append(problems, rule.ID+" "+problem)
		}
		if seen[rule.ID] {
			problems = append(problems, rule.ID+" is there twice")
		}
		seen[rule.ID] = true
	}
	return problems
}

func (r Rule) problems() []string {
	var problems []string
	if !idPattern.MatchString(r.ID) {
		problems = append(problems, "is no rule id")
	}
	if !slices.Contains(Marks, r.Mark) {
		problems = append(problems, fmt.Sprintf("has the mark %q", r.Mark))
	}
	if !slices.Contains(Verdicts, r.Verdict) {
		problems = append(problems, fmt.Sprintf("has the verdict %q", r.Verdict))
	}
	if r.Rule == "" {
		problems = append(problems, "does not say what the rule is")
	}
	if (r.Verdict == Met) != (r.Reason == "") {
		problems = append(problems, "needs a reason if, and only if, it is not met")
	}
	if r.Verdict == Later && !slices.Contains(postponed, r.ID) {
		problems = append(problems, "is not among the rules that may be met later")
	}
	return problems
}
