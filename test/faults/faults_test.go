// SPDX-License-Identifier: Apache-2.0

// Package faults runs the sandbox with every fault that it knows.
package faults

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// grouped are faults of a host that are tried in a cluster of three: clusterctl shows several Machines that are not ready as one line
// without their messages, and a report has to be seen all the same. Two before the installation, one of a host that alone would be
// installed at once, and one in it stand for the others.
var grouped = []string{"control-plane-never-boots", "host-disconnects", "wrong-boot-order"}

// speed makes an installation take some seconds of simulated time.
const speed = 3

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
	for i, fault := range sandbox.Faults() {
		options := sandbox.Options{Fault: fault.Name, Namespace: fault.Name, Speed: speed, Address: fmt.Sprintf("127.10.%d.5", 100+i)}
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
		world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Speed: speed, Inspect: inspect})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(world.Stop()).To(Succeed()) })
		for _, options := range shared {
			options.World = world
			t.Run(options.Fault, func(t *testing.T) {
				t.Parallel()
				expectFault(t, options)
			})
		}
	})
}

// inspect lets a host be found as the fault says after which its namespace is called.
func inspect(host *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
	for _, fault := range sandbox.Faults() {
		if fault.Name == host.Namespace && fault.Inspect != nil {
			fault.Inspect(host, hardware)
		}
	}
}

// expectFault runs the sandbox and expects a cluster that recovers, or a report.
func expectFault(t *testing.T, options sandbox.Options) {
	t.Helper()
	g := NewWithT(t)
	all := sandbox.Faults()
	fault := all[slices.IndexFunc(all, func(f sandbox.Fault) bool { return f.Name == options.Fault })]
	output := &bytes.Buffer{}
	options.Topology, options.Out, options.Output = sandbox.SNO, t.TempDir(), output
	options.Retry = fault.Name == "install-fails"
	switch {
	case fault.NeedsWorker:
		options.Topology, options.Workers = sandbox.HA, ptr.To(1)
	case fault.NeedsPeers, slices.Contains(grouped, fault.Name):
		options.Topology = sandbox.Compact
	}
	err := sandbox.Run(t.Context(), options)
	if fault.Report == nil || options.Retry {
		g.Expect(err).NotTo(HaveOccurred(), "%s", output.String())
		return
	}
	g.Expect(err).To(MatchError(sandbox.ErrReported), "%s", output.String())
	t.Log(output.String())
	if options.World != nil {
		// Left alone, it would try again for as long as the others run, and take their time: the cluster, and Metal3 with its hosts.
		hosts := &bmov1alpha1.BareMetalHostList{}
		g.Expect(options.World.Client.List(t.Context(), hosts, client.InNamespace(options.Namespace))).To(Succeed())
		for i := range hosts.Items {
			options.World.Metal3.Faults().Clear(client.ObjectKeyFromObject(&hosts.Items[i]))
		}
		g.Expect(options.World.Client.DeleteAllOf(t.Context(), &clusterv1.Cluster{}, client.InNamespace(options.Namespace))).To(Succeed())
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
