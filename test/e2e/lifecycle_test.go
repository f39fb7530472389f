// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// expectNoErrors checks that no pass of the bootstrap manager over a config of the scene failed: who reads the log of a healthy
// installation finds no error in it.
func (s scene) expectNoErrors() {
	GinkgoHelper()
	log, err := os.ReadFile(world.Bootstrap.LogFile())
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(log)) {
		failed := strings.Contains(line, `"Reconciler error"`) && strings.Contains(line, `="`+s.request.Namespace+"/")
		Expect(failed).To(BeFalse(), line)
	}
}

var _ = Describe("topologies", func() {
	DescribeTable("install, and every Node is the right host's",
		func(ctx SpecContext, namespace string, topology sandbox.Topology, workers, address int) {
			s := newScene(ctx, namespace, "demo", topology, workers, address)
			s.apply(ctx)
			s.expectRunning(ctx)
			kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
			Expect(world.WriteKubeconfig(ctx, s.key(), kubeconfig)).To(Succeed())
			Expect(world.VerifyNodes(ctx, s.key(), kubeconfig)).To(Succeed())
			Expect(world.VerifyServingCertificates(ctx, s.key(), settleTimeout)).To(Succeed())
			s.expectNoErrors()
			s.delete(ctx)
		},
		Entry("compact", "compact", sandbox.Compact, 0, 41),
		Entry("single node whose worker joins afterwards", "sno-worker", sandbox.SNO, 1, 42),
	)
})
