// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// expectWaiting checks that a manager is ready, stays so, and says which CRDs it waits for.
func expectWaiting(t *testing.T, manager *localcontrolplane.Manager) {
	t.Helper()
	g := NewWithT(t)
	g.Consistently(manager.Ready).WithArguments(t.Context()).WithTimeout(3 * time.Second).WithPolling(500 * time.Millisecond).Should(Succeed())
	log, err := os.ReadFile(manager.LogFile())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(log)).To(And(ContainSubstring("Waiting for CRDs"), ContainSubstring(assisted.CRDAgentClusterInstalls)))
}

// TestContractKubectl installs the components files as they are, with their roles and nothing else, where no CRD of hive, assisted-service
// and Metal3 is yet.
func TestContractKubectl(t *testing.T) {
	t.Run("CTL-20 managers from plain kubectl are ready, say which CRDs they wait for, and work when those appear", func(t *testing.T) {
		g := NewWithT(t)
		apply := func(ctx context.Context, cp *localcontrolplane.ControlPlane) error {
			files := t.TempDir()
			if err := release.Build(ctx, cp.Tools(), firstVersion, files); err != nil {
				return err
			}
			if err := cp.InstallCRDs(ctx, localcontrolplane.CRDsCore); err != nil {
				return err
			}
			if _, err := cp.StartCore(ctx); err != nil {
				return err
			}
			_, err := cp.Run(ctx, "kubectl", nil, "apply", "--filename="+filepath.Join(files, "bootstrap-components.yaml"),
				"--filename="+filepath.Join(files, "control-plane-components.yaml"))
			return err
		}
		world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Progress: t.Output(), Speed: speed, LateCRDs: true, Install: apply})
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { g.Expect(world.Stop()).To(Succeed()) }()
		pids := []int{world.Bootstrap.PID(), world.ControlPlane.PID()}
		expectWaiting(t, world.Bootstrap)
		expectWaiting(t, world.ControlPlane)

		g.Expect(world.InstallLateCRDs(t.Context())).To(Succeed())
		request := sandbox.ClusterRequest{Namespace: "late", Name: "demo", Topology: sandbox.SNO, Address: "127.30.4.9"}
		key := request.Key()
		g.Expect(world.CreateInputsFor(t.Context(), request, request.Machines())).To(Succeed())
		g.Expect(world.ApplyCluster(t.Context(), request)).To(Succeed())
		g.Expect(world.AwaitCluster(t.Context(), key, installTimeout, "the cluster", world.Running(key, request.Machines()))).To(Succeed())
		g.Expect(world.DeleteCluster(t.Context(), key, deleteTimeout)).To(Succeed())
		g.Expect([]int{world.Bootstrap.PID(), world.ControlPlane.PID()}).To(Equal(pids), "no manager was restarted")
	})
}
