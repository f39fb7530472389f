// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// askingNothing are the reasons that nobody has to act on: those of what is well, of what is over, and of what goes on.
var askingNothing = strings.Fields(`
	Available NotNeeded Ready MachineDeleting ClusterDeleting Healthy NotAssociated Recognized NodeJoined Claiming Installed
	WaitingForRecognition ReadyToInstall Installing NotDeleting DeletionCompleted Initialized NotInitialized Preparing Finalizing Retrying
	Match Unknown Resolved Skipped UpToDate Updating NotRollingOut NotScalingUp NotScalingDown NotUpgrading Requested InProgress
`)

var (
	kindHeading = regexp.MustCompile(`^## (OpenshiftAssisted\w+)$`)
	// A condition of its own, or one whose reasons are listed under a sentence that names it.
	conditionHeading = regexp.MustCompile(`^### (?:.*\bcondition ([A-Z]\w+) .*|([A-Z]\w+))$`)
	reasonLine       = regexp.MustCompile("^- `(\\w+)`(?:, of \\w+)?: ")
	reasonRow        = regexp.MustCompile("^\\| (`\\w+`(?:, `\\w+`)*) \\| .+ \\|$")
)

// reasonsOf are the reasons in a page, as kind, condition and reason, by what finds those of a line.
func reasonsOf(t *testing.T, page string, find func(line string) []string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../docs", page))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var kind, condition string
	var found []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if match := kindHeading.FindStringSubmatch(line); match != nil {
			kind = match[1]
		}
		if strings.HasPrefix(line, "#") {
			condition = ""
		}
		if match := conditionHeading.FindStringSubmatch(line); match != nil {
			condition = match[1] + match[2]
		}
		for _, reason := range find(line) {
			if condition != "" {
				found = append(found, kind+" "+condition+" "+reason)
			}
		}
	}
	return found
}

// TestEveryProblemHasAnEntry: docs/reasons.md says of every reason that asks for something what to do, under its condition, and of none
// that does not exist. A reason of another condition's list may be set for two: it is listed where it is explained.
func TestEveryProblemHasAnEntry(t *testing.T) {
	g := NewWithT(t)
	explained := reasonsOf(t, "reference/conditions.md", func(line string) []string {
		if match := reasonLine.FindStringSubmatch(line); match != nil {
			return match[1:]
		}
		return nil
	})
	entries := reasonsOf(t, "reasons.md", func(line string) []string {
		match := reasonRow.FindStringSubmatch(line)
		if match == nil {
			return nil
		}
		return strings.Split(strings.ReplaceAll(match[1], "`", ""), ", ")
	})
	g.Expect(len(entries)).To(BeNumerically(">", 100))
	g.Expect(slices.Compact(slices.Sorted(slices.Values(entries)))).To(HaveLen(len(entries)), "an entry for each reason")
	known := map[string]bool{}
	for _, reason := range explained {
		known[reason[strings.LastIndex(reason, " ")+1:]] = true
		if !slices.Contains(askingNothing, reason[strings.LastIndex(reason, " ")+1:]) {
			g.Expect(entries).To(ContainElement(reason), "docs/reasons.md does not say what to do")
		}
	}
	for _, entry := range entries {
		g.Expect(known).To(HaveKey(entry[strings.LastIndex(entry, " ")+1:]), entry)
	}
}
