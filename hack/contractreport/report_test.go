// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/hack/internal/contract"
)

func TestReport(t *testing.T) {
	rules := []contract.Rule{
		{ID: "CP-1", Mark: contract.Mandatory, Verdict: contract.Met},
		{ID: "CP-2", Mark: contract.Optional, Verdict: contract.Declined, Reason: "No need."},
	}
	one := contract.Test{Package: "test/x", Function: "TestContractX", Name: "CP-1 holds with a/b"}
	tests := []struct {
		name     string
		tests    []contract.Test
		events   [][3]string
		problems []string
		shown    string
	}{
		{
			name:  "a passing test shows a rule",
			tests: []contract.Test{one},
			events: [][3]string{
				{modulePath + "test/x", "TestContractX/deeper/CP-1_holds_with_a/b", "pass"},
			},
			shown: "CP-1     met       pass test/x.TestContractX\n",
		},
		{name: "a failing one does not", tests: []contract.Test{one},
			events: [][3]string{
				{
					modulePath + "test/x", "TestContractX/CP-1_holds_with_a/b", "fail",
				},
				{modulePath + "test/x", "TestContractX/CP-1_holds_with_a/b#01", "pass"},
			}, problems: []string{`CP-1 holds with a/b": fail`, "CP-1 has no test that passed"}, shown: "fail test/x.TestContractX"},
		{name: "a skipped one does not", tests: []contract.Test{one},
			events:   [][3]string{{modulePath + "test/x", "TestContractX/CP-1_holds_with_a/b", "skip"}},
			problems: []string{"skip", "CP-1 has no test that passed"}, shown: "skip test/x.TestContractX"},
		{name: "one that is not run does not", tests: []contract.Test{one},
			events:   [][3]string{{modulePath + "test/y", "TestContractX/CP-1_holds_with_a/b", "pass"}},
			problems: []string{"not run", "CP-1 has no test that passed"}, shown: "not run test/x.TestContractX"},
		{
			name: "a rule without a test", problems: []string{"CP-1 has no test that passed"},
			shown: "2 rules: 1 met, 1 declined, 0 later; 1 problems\n",
		},
		{
			name:   "a test of a rule that does not exist",
			tests:  []contract.Test{one, {Package: "test/x", Function: "TestContractX", Name: "CP-3 holds"}},
			events: [][3]string{{modulePath + "test/x", "TestContractX/CP-1_holds_with_a/b", "pass"}}, problems: []string{"CP-3 is named"},
			shown: "1 problems",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			ended := results{}
			for _, event := range tt.events {
				ended.add(event[0], event[1], event[2])
			}
			out := &bytes.Buffer{}
			problems := report(out, rules, tt.tests, ended)
			g.Expect(problems).To(HaveLen(len(tt.problems)))
			for i, problem := range tt.problems {
				g.Expect(problems[i]).To(ContainSubstring(problem))
			}
			g.Expect(out.String()).To(ContainSubstring(tt.shown))
		})
	}
}

func TestPackages(t *testing.T) {
	NewWithT(t).Expect(packages([]contract.Test{{Package: "b"}, {Package: "a"}, {Package: "b"}})).To(Equal([]string{"./a", "./b"}))
}
