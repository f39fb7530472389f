// SPDX-License-Identifier: Apache-2.0

package main

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

// summary counts tests that have no subtests, and packages that fail outside of any test, and shows what failed.
type summary struct {
	out                     io.Writer
	passed, failed, skipped int

	output  map[testID][]string
	parents map[testID]bool // tests with subtests: they are counted only when they fail by themselves
	blamed  map[testID]bool // tests of which a subtest failed
	failing map[string]int  // package → failed tests
	counts  map[string]int  // package → tests that ended
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out: out, output: map[testID][]string{}, parents: map[testID]bool{}, blamed: map[testID]bool{},
		failing: map[string]int{}, counts: map[string]int{},
	}
}

// read follows the events until they end.
func (s *summary) read(events io.Reader) error {
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

func (s *summary) handle(e event) {
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

func (s *summary) endTest(e event) {
	id := testID{e.Package, e.Test}
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
		s.passed++
	case "fail":
		s.failed++
	default:
		s.skipped++
	}
}

func (s *summary) endPackage(e event) {
	if e.Action == "fail" && s.failing[e.Package] == 0 {
		// It did not compile, panicked outside of a test, or TestMain failed.
		s.failed++
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

// print writes the last lines of the run.
func (s *summary) print() {
	if s.skipped > 0 {
		fmt.Fprintf(s.out, "%d skipped\n", s.skipped)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed\n", s.passed, s.failed)
}
