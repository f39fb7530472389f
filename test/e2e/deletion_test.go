// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// inPhase checks that the installation of a cluster is in one of the phases.
func inPhase(s scene, phases ...assisted.Phase) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		list := &hiveext.AgentClusterInstallList{}
		err := world.Watch.List(
			ctx, list, client.InNamespace(s.request.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.request.Name},
		)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			for _, phase := range phases {
				if assisted.PhaseOf(&list.Items[i]) == phase {
					return "", nil
				}
			}
		}
		return "the installation is in another phase", nil
	}
}

// discovering checks that the first host has registered, and that the installation waits for others. Before that Cluster API may not have
// made the Cluster the owner of its MachineHealthChecks, which nobody deletes then.
func discovering(s scene) sandbox.Check {
	waiting := inPhase(s, assisted.PhaseWaiting)
	return func(ctx context.Context) (string, error) {
		agents := &assisted.AgentList{}
		if err := world.Watch.List(ctx, agents, client.InNamespace(s.request.Namespace)); err != nil {
			return "", err
		}
		if len(agents.Items) == 0 {
			return "no host has registered", nil
		}
		return waiting(ctx)
	}
}

var _ = Describe("deletion (DESIGN D12)", func() {
	DescribeTable(
		"leaves nothing and hangs nowhere",
		func(ctx SpecContext, namespace string, address int, until func(scene) sandbox.Check, before func(context.Context, scene)) {
			s := newScene(ctx, namespace, "demo", sandbox.HA, 1, address)
			snapshot, err := sandbox.TakeSnapshot(ctx, world.Management.Admin())
			Expect(err).NotTo(HaveOccurred())
			s.apply(ctx)
			s.await(ctx, installTimeout, "the point of deletion", until(s))
			if before != nil {
				before(ctx, s)
			}
			s.delete(ctx)
			Eventually(func() error {
				now, err := sandbox.TakeSnapshot(ctx, world.Management.Admin())
				if err != nil {
					return err
				}
				return snapshot.Compare(now)
			}).WithContext(ctx).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
		},
		Entry("while hosts are discovered", "delete-waiting", 21, discovering, nil),
		Entry(
			"in the middle of the installation", "delete-installing", 22,
			func(s scene) sandbox.Check { return inPhase(s, assisted.PhaseInstalling, assisted.PhaseFinalizing) }, nil,
		),
		Entry("when its API is dead", "delete-dead", 23, func(s scene) sandbox.Check { return world.Running(s.key(), s.request.Machines()) },
			func(_ context.Context, s scene) { Expect(world.Workload.Down(s.install(), 0)).To(Succeed()) }),
	)
})
