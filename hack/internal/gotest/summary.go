// SPDX-License-Identifier: Apache-2.0

package gotest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action  string  `json:"Action"`
	Package string  `json:"Package"`
	Test    string  `json:"Test"`
	Output  string  `json:"Output"`
	Elapsed float64 `json:"Elapsed"`
	// ImportPath is set instead of Package on the output of the compiler.
	ImportPath string `json:"ImportPath"`
	// FailedBuild, on a package's failure, is the ImportPath of the build that failed.
	FailedBuild string `json:"FailedBuild"`
}

// testID names a test within the run; Test is empty for the package itself.
type testID struct{ pkg, test string }

func (id testID) parent() (testID, bool) {
	i := strings.LastIndex(id.test, "/")
	if i < 0 {
		return testID{}, false
	}
	return testID{id.pkg, id.test[:i]}, true
}

// Summary counts tests that have no subtests, and packages that fail outside of any test, and shows what failed.
type Summary struct {
	// Passed, Failed and Skipped are the counts so far.
	Passed, Failed, Skipped int
	// Ended, when it is set, gets every test that ended, with and without subtests: its package, its name with those of its parents, and
	// pass, fail or skip.
	Ended func(pkg, test, action string)

	out io.Writer

	output  map[testID][]string
	parents map[testID]bool // tests with subtests: they are counted only when they fail by themselves
	blamed  map[testID]bool // tests of which a subtest failed
	failing map[string]int  // package → failed tests
	counts  map[string]int  // package → tests that ended
}

// NewSummary returns a summary that shows a line for every package, and the output of what fails, on out.
func NewSummary(out io.Writer) *Summary {
	return &Summary{
		out: out, output: map[testID][]string{}, parents: map[testID]bool{}, blamed: map[testID]bool{},
		failing: map[string]int{}, counts: map[string]int{},
	}
}

// read follows the events until they end.
func (s *Summary) read(events io.Reader) error {
	decoder := json.NewDecoder(events)
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
		s.handle(e)
	}
}

func (s *Summary) handle(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "run":
		if parent, ok := id.parent(); ok {
			s.parents[parent] = true
		}
	case "output":
		s.output[id] = append(s.output[id], e.Output)
	case "build-output":
		build := testID{pkg: e.ImportPath}
		s.output[build] = append(s.output[build], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
	}
}

func (s *Summary) endTest(e event) {
	id := testID{e.Package, e.Test}
	if s.Ended != nil {
		s.Ended(e.Package, e.Test, e.Action)
	}
	if e.Action == "fail" {
		s.failing[e.Package]++
		if parent, ok := id.parent(); ok {
			s.blamed[parent] = true
		}
		fmt.Fprintf(s.out, "--- FAIL: %s %s\n%s", e.Package, e.Test, strings.Join(s.output[id], ""))
	}
	delete(s.output, id)
	if s.parents[id] && (e.Action != "fail" || s.blamed[id]) {
		return
	}
	s.counts[e.Package]++
	switch e.Action {
	case "pass":
		s.Passed++
	case "fail":
		s.Failed++
	default:
		s.Skipped++
	}
}

func (s *Summary) endPackage(e event) {
	if e.Action == "fail" && s.failing[e.Package] == 0 {
		// It did not compile, panicked outside of a test, or TestMain failed.
		s.Failed++
		output := s.output[testID{pkg: e.FailedBuild}]
		if len(output) == 0 {
			output = s.output[testID{pkg: e.Package}]
		}
		fmt.Fprintf(s.out, "--- FAIL: %s\n%s", e.Package, strings.Join(output, ""))
	}
	if e.Action != "skip" { // skip is a package without tests
		fmt.Fprintf(s.out, "%-4s %s (%d tests, %.1fs)\n", e.Action, e.Package, s.counts[e.Package], e.Elapsed)
	}
	delete(s.output, testID{pkg: e.Package})
}

// Print writes the last lines of the run: the counts.
func (s *Summary) Print() {
	if s.Skipped > 0 {
		fmt.Fprintf(s.out, "%d skipped\n", s.Skipped)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed\n", s.Passed, s.Failed)
}
