// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

var _ = Describe("managers that are older than the CRDs they need (CTL-20)", func() {
	It("are ready, say what they wait for, and work when the CRDs appear, without a restart", func(ctx SpecContext) {
		late, err := sandbox.NewWorld(context.WithoutCancel(ctx), sandbox.WorldOptions{
			Progress: GinkgoWriter, Speed: speed, LateCRDs: true, Policies: true,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(end, late)
		managers := []*localcontrolplane.Manager{late.Bootstrap, late.ControlPlane}
		pids := map[string]int{}
		for _, manager := range managers {
			pids[manager.Name()] = manager.PID()
			Consistently(manager.Ready).WithArguments(ctx).WithTimeout(5 * time.Second).WithPolling(time.Second).Should(Succeed())
			log, err := os.ReadFile(manager.LogFile())
			Expect(err).NotTo(HaveOccurred())
			Expect(string(log)).To(And(ContainSubstring("Waiting for CRDs"), ContainSubstring(assisted.CRDAgentClusterInstalls)))
		}
		Expect(late.InstallLateCRDs(ctx)).To(Succeed())
		enter(late)
		s := newScene(ctx, "late", "demo", sandbox.SNO, 0, 51)
		s.apply(ctx)
		s.expectRunning(ctx)
		s.delete(ctx)
		for _, manager := range managers {
			Expect(manager.PID()).To(Equal(pids[manager.Name()]), "it was not restarted")
		}
	})
})
