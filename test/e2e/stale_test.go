// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/chaos"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// once returns a chooser that kills a manager after the first write of each kind ("create machines").
func once(kinds ...string) func(chaos.Write) bool {
	left := map[string]bool{}
	for _, kind := range kinds {
		left[kind] = true
	}
	return func(w chaos.Write) bool {
		kill := left[w.String()]
		left[w.String()] = false
		return kill
	}
}

var _ = Describe("managers that know less than there is (DESIGN D15)", func() {
	It("make nothing twice and take nothing for foreign", func(ctx SpecContext) {
		dir, err := os.MkdirTemp("", "stale-")
		Expect(err).NotTo(HaveOccurred())
		var victim *chaos.Victim
		// At full speed the service rewrites its objects more often than the manager hears of them, and no decision about day 1 is ever up to
		// date.
		stale, err := sandbox.NewWorld(context.WithoutCancel(ctx), sandbox.WorldOptions{Progress: GinkgoWriter, Speed: 1,
			Adjust: func(cp *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
				if spec.Name != localcontrolplane.ControlPlaneManager().Name {
					return
				}
				admin, err := client.New(cp.Admin(), client.Options{})
				Expect(err).NotTo(HaveOccurred())
				// It dies with half of a Machine's objects made, and hears late of what it makes for the installation.
				victim = chaos.NewVictim(admin, dir, once("create metal3machines", "create openshiftassistedconfigs"))
				victim.SlowWatches = []string{"clusterimagesets", "clusterdeployments", "agentclusterinstalls"}
				victim.Adjust(cp, spec)
			}})
		Expect(err).NotTo(HaveOccurred())
		supervision, stop := context.WithCancel(context.WithoutCancel(ctx))
		go victim.Supervise(supervision, stale.ControlPlane)
		DeferCleanup(func() {
			end(stale)
			stop()
			Expect(victim.Close()).To(Succeed())
		})
		enter(stale)

		s := newScene(ctx, "stale", "demo", sandbox.SNO, 0, 61)
		s.apply(ctx)
		s.expectRunning(ctx)
		Expect(victim.Points()).To(HaveLen(2))
		machines, images := &clusterv1.MachineList{}, &hivev1.ClusterImageSetList{}
		Expect(stale.Client.List(ctx, machines)).To(Succeed())
		Expect(machines.Items).To(HaveLen(1))
		Expect(stale.Client.List(ctx, images)).To(Succeed())
		Expect(images.Items).To(HaveLen(1))
		s.delete(ctx)
	})
})
