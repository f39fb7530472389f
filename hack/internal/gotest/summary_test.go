// SPDX-License-Identifier: Apache-2.0

package gotest

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSummary(t *testing.T) {
	tests := map[string]struct {
		events         []string
		passed, failed int
		shown          string
	}{
		"only tests without subtests count": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/one"}`,
				`{"Action":"run","Package":"p","Test":"TestA/two"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/two"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":1}`,
			},
			passed: 2, shown: "pass p (2 tests, 1.0s)\n2 passed, 0 failed\n",
		},
		"a failing test is shown with its output": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"what went wrong\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			failed: 1, shown: "--- FAIL: p TestA\nwhat went wrong\n",
		},
		"a test whose subtests fail counts once": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA/one"}`,
				`{"Action":"fail","Package":"p","Test":"TestA/one"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
			},
			failed: 1, shown: "0 passed, 1 failed\n",
		},
		"a test that fails after its subtests passed counts": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
			},
			passed: 1, failed: 1, shown: "1 passed, 1 failed\n",
		},
		"a package that does not compile counts as failed": {
			events: []string{
				`{"Action":"build-output","ImportPath":"p [p.test]","Output":"x.go:1: no such thing\n"}`,
				`{"Action":"build-fail","ImportPath":"p [p.test]"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			},
			failed: 1, shown: "x.go:1: no such thing\n",
		},
		"a package that panics outside of a test counts as failed": {
			events: []string{
				`{"Action":"output","Package":"p","Output":"panic: no\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			failed: 1, shown: "panic: no\n",
		},
		"skipped tests are counted apart": {
			events: []string{`{"Action":"skip","Package":"p","Test":"TestA"}`, `{"Action":"skip","Package":"q"}`},
			shown:  "1 skipped\n0 passed, 0 failed\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out := &bytes.Buffer{}
			s := NewSummary(out)
			g.Expect(s.read(strings.NewReader(strings.Join(test.events, "\n")))).To(Succeed())
			s.Print()
			g.Expect(s.Passed).To(Equal(test.passed))
			g.Expect(s.Failed).To(Equal(test.failed))
			g.Expect(out.String()).To(ContainSubstring(test.shown))
		})
	}
}

func TestSummaryRefusesWhatIsNoEvent(t *testing.T) {
	NewWithT(t).Expect(NewSummary(&bytes.Buffer{}).read(strings.NewReader("no json"))).To(MatchError(ContainSubstring("go test")))
}
