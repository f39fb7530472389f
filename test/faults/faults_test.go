// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

func TestMain(m *testing.M) {
	// Clusters wait for most of their time.
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintf(os.Stderr, "cannot run three faults at a time: %v\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestFaults runs the sandbox with every fault, as `make sandbox FAULT=<name>` does: a cluster recovers, or it says which host is wrong and
// which check fails, as docs/troubleshooting.md has it. Clusters share a World, in namespaces of their own, unless a fault happens to all
// of it.
func TestFaults(t *testing.T) {
	var shared []sandbox.Options
	for _, fault := range sandbox.Faults() {
		options := Options(&fault)
		if !fault.WholeWorld {
			shared = append(shared, options)
			continue
		}
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			expectFault(t, options)
		})
	}
	t.Run("in one world", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Speed: Speed, Inspect: Inspect})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(world.Stop()).To(Succeed()) })
		seen, ended := newTally(world), atomic.Int32{}
		// Returns when all have ended.
		t.Run("of one cluster", func(t *testing.T) {
			for _, options := range shared {
				options.World = world
				t.Run(options.Fault, func(t *testing.T) {
					t.Parallel()
					expectFault(t, options)
					ended.Add(1)
				})
			}
		})
		if !t.Failed() && int(ended.Load()) == len(shared) { // Else not every fault was tried.
			expectCounted(t, seen, world)
		}
	})
}

// expectFault runs the sandbox and expects a cluster that recovers, or a report.
func expectFault(t *testing.T, options sandbox.Options) {
	t.Helper()
	g := NewWithT(t)
	all := sandbox.Faults()
	fault := all[slices.IndexFunc(all, func(f sandbox.Fault) bool { return f.Name == options.Fault })]
	output := &bytes.Buffer{}
	options.Out, options.Output = t.TempDir(), output
	options.Retry = fault.Name == "install-fails"
	err := sandbox.Run(t.Context(), options)
	if fault.Report == nil || options.Retry {
		g.Expect(err).NotTo(HaveOccurred(), "%s", output.String())
		return
	}
	g.Expect(err).To(MatchError(sandbox.ErrReported), "%s", output.String())
	t.Log(output.String())
	if options.World != nil {
		g.Expect(End(t.Context(), options.World, options.Namespace)).To(Succeed())
	}
}

// TestFaultsAreDocumented: somebody who meets a fault finds it in the guide, under its name.
func TestFaultsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	guide, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, fault := range sandbox.Faults() {
		g.Expect(string(guide)).
			To(ContainSubstring("make sandbox FAULT="+fault.Name+"\n"), "docs/troubleshooting.md has an entry for %s", fault.Name)
		if fault.Report == nil {
			continue
		}
		for _, text := range fault.Report(&sandbox.FaultScene{}) {
			if strings.HasPrefix(text, "the BareMetalHost") {
				continue // Its name is another one in every run.
			}
			g.Expect(strings.Join(strings.Fields(string(guide)), " ")).
				To(ContainSubstring(text), "docs/troubleshooting.md shows what %s looks like", fault.Name)
		}
	}
}
