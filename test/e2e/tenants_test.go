// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

var _ = Describe("tenants (DESIGN D13)", func() {
	It("installs clusters of one name, and of names that look alike when joined, side by side", func(ctx SpecContext) {
		scenes := []scene{
			newScene(ctx, "tenant-1", "same", sandbox.SNO, 0, 11),
			newScene(ctx, "tenant-2", "same", sandbox.SNO, 0, 12),
			newScene(ctx, "a-b", "c", sandbox.SNO, 0, 13),
			newScene(ctx, "a", "b-c", sandbox.SNO, 0, 14),
		}
		for _, s := range scenes {
			s.apply(ctx)
		}
		images := map[string]bool{}
		for _, s := range scenes {
			s.expectRunning(ctx)
			s.expectFewWrites()
			agents := &assisted.AgentList{}
			Expect(world.Client.List(ctx, agents)).To(Succeed())
			for _, agent := range agents.Items {
				if agent.Namespace != s.request.Namespace {
					Expect(agent.Spec.ClusterDeploymentName.Namespace).NotTo(Equal(s.request.Namespace), "no host of another namespace")
				}
			}
		}
		list := &hivev1.ClusterImageSetList{}
		Expect(world.Client.List(ctx, list)).To(Succeed())
		for _, set := range list.Items {
			images[set.Name] = true
		}
		Expect(len(images)).To(BeNumerically(">=", len(scenes)), "a ClusterImageSet for each cluster")
		By("deleting one of two clusters of one name, which leaves the other alone")
		scenes[0].delete(ctx)
		scenes[1].expectRunning(ctx)
		for _, s := range scenes[1:] {
			s.delete(ctx)
		}
	})
})
