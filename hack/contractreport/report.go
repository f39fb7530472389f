// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/capi-openshift/agent-providers/hack/internal/contract"
)

// modulePath is what import paths have before the folders of this repository.
const modulePath = "github.com/capi-openshift/agent-providers/"

// suffix is what go test puts behind the name of a test that is there twice.
var suffix = regexp.MustCompile(`#[0-9]{2,}$`)

// results are how tests ended: pass, fail or skip.
type results map[result]string

// result names a subtest by package folder, top-level function and its own name, as contract.Test does.
type result struct{ folder, function, name string }

// add notes how a test ended. One that failed once has failed.
func (r results) add(pkg, test, action string) {
	function, rest, _ := strings.Cut(test, "/")
	folder := strings.TrimPrefix(pkg, modulePath)
	rest = suffix.ReplaceAllString(rest, "")
	// A subtest may be anywhere below its function, and its name may hold slashes.
	for name, more := rest, true; more; _, name, more = strings.Cut(name, "/") {
		key := result{folder, function, name}
		if r[key] == "" || action == "fail" {
			r[key] = action
		}
	}
}

// of returns how a test ended, "not run" when it did not.
func (r results) of(test contract.Test) string {
	if action := r[result{test.Package, test.Function, test.RunName()}]; action != "" {
		return action
	}
	return "not run"
}

// report writes a line for every rule and the counts, and returns what is wrong.
func report(out io.Writer, rules []contract.Rule, tests []contract.Test, r results) []string {
	problems := contract.UnknownIDs(rules, tests)
	byRule := contract.ByRule(tests)
	counts := map[contract.Verdict]int{}
	for _, rule := range rules {
		counts[rule.Verdict]++
		shown := make([]string, 0, len(byRule[rule.ID]))
		passed := 0
		for _, test := range byRule[rule.ID] {
			action := r.of(test)
			shown = append(shown, fmt.Sprintf("%s %s.%s", action, test.Package, test.Function))
			if action == "pass" {
				passed++
			} else {
				problems = append(problems, fmt.Sprintf("%s: %s in %s: %q: %s", rule.ID, test.Function, test.Package, test.Name, action))
			}
		}
		if rule.Verdict == contract.Met && passed == 0 {
			problems = append(problems, rule.ID+" has no test that passed")
		}
		slices.Sort(shown)
		fmt.Fprintf(out, "%-8s %-9s %s\n", rule.ID, rule.Verdict, strings.Join(slices.Compact(shown), ", "))
	}
	fmt.Fprintf(out, "%d rules: %d met, %d declined, %d later; %d problems\n",
		len(rules), counts[contract.Met], counts[contract.Declined], counts[contract.Later], len(problems))
	return problems
}
