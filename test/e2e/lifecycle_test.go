// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
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

// maxWritesOfFirst are the writes, events counted, that a cluster of one Machine may take until it is Available and its Machine Ready, and
// maxWritesOfMore those that each further Machine may. A cluster takes some 44 and 18. Writes that the API server refuses do not count: the
// busier the machine, the more often somebody else has changed the object meanwhile. What a manager writes of its own accord is counted
// exactly in the golden files of its stories.
const maxWritesOfFirst, maxWritesOfMore = 65, 30

// expectFewWrites checks that both managers have not written more for the cluster than an installation may take (DESIGN D37).
func (s scene) expectFewWrites() {
	GinkgoHelper()
	stored, refused, list := 0, 0, []sandbox.Write{}
	for _, user := range []string{world.Bootstrap.User, world.ControlPlane.User} {
		writes, err := sandbox.WritesFor(world.Management.AuditLog(), user, s.request.Namespace)
		Expect(err).NotTo(HaveOccurred())
		all, _ := sandbox.Sum(writes)
		refusedOf := sandbox.Refused(writes)
		stored, refused, list = stored+all-refusedOf, refused+refusedOf, append(list, writes...)
	}
	machines := s.request.Machines()
	AddReportEntry("writes", fmt.Sprintf("%d for %d Machines, %d refused", stored, machines, refused))
	Expect(stored).To(BeNumerically("<=", maxWritesOfFirst+(machines-1)*maxWritesOfMore), "%v", list)
}

var _ = Describe("topologies", func() {
	DescribeTable("install, and every Node is the right host's",
		func(ctx SpecContext, namespace string, topology sandbox.Topology, workers, address int) {
			s := newScene(ctx, namespace, "demo", topology, workers, address)
			s.apply(ctx)
			s.expectRunning(ctx)
			s.expectFewWrites()
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
