// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/capi-openshift/agent-providers/test/golden"
	"github.com/capi-openshift/agent-providers/test/inject"
)

// counted are the stories whose writes are counted, by the name of their golden file.
var counted = map[string]story{
	"install": stories["install"],
	"install-of-a-single-node": {
		begin:    func(t *testing.T) *world { return newWorld(t, 1, 0) },
		chapters: []chapter{{nil, (*world).available}},
	},
	"scale-up": stories["scale-up"],
	"another-worker": {
		begin:    living(3, func(w *world) { w.workersWanted(1) }),
		chapters: []chapter{{nil, func(w *world) bool { return len(w.machines()) == 4 }}},
	},
	"replacement":                  stories["a healthy Machine leaves"],
	"remediation":                  stories["remediation"],
	"rollout-without-a-spare-host": stories["rollout without a spare host"],
	"upgrade":                      stories["upgrade"],
	"deletion":                     stories["deletion"],
	"deletion-of-an-installation":  stories["deletion during the installation"],
	"another-token":                stories["another token"],
}

// TestWrites counts what the manager writes when nothing fails, by verb and kind, and fails when a number is another one than that of the
// golden file. Who changes one says with it what a cluster gains or loses: every write is made for thousands of clusters (DESIGN D37).
func TestWrites(t *testing.T) {
	for name, s := range counted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inject.Every(t, nil, 1, func(t *testing.T, calls *inject.Calls) inject.Ending {
				t.Helper()
				w := s.happens(t, calls)
				golden.Compare(t, "writes-"+name+".golden", describeWrites(calls.Writes(), w.recorded()))
				return inject.Ending{Hub: w.hub}
			})
		})
	}
}

// describeWrites has a line for each kind of write and each reason of an event, and the sums.
func describeWrites(writes map[string]int, events []string) string {
	var lines strings.Builder
	total := 0
	for _, what := range slices.Sorted(maps.Keys(writes)) {
		total += writes[what]
		fmt.Fprintf(&lines, "%3d %s\n", writes[what], what)
	}
	reasons := map[string]int{}
	for _, reason := range events {
		reasons[reason]++
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&lines, "%3d create Event %s\n", reasons[reason], reason)
	}
	fmt.Fprintf(&lines, "%3d without events\n%3d in all\n", total, total+len(events))
	return lines.String()
}
