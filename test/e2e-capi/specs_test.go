// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/test/e2e"
)

// sno is the flavor of single-node clusters: a spec that asks for one control-plane Machine gets a whole cluster.
const sno = "sno"

var _ = Describe("Cluster API's quick start", func() {
	ctx := context.Background()
	e2e.QuickStartSpec(ctx, func() e2e.QuickStartSpecInput {
		return e2e.QuickStartSpecInput{
			E2EConfig: environment.config, ClusterctlConfigPath: environment.clusterctl, BootstrapClusterProxy: environment.management,
			ArtifactFolder: environment.artifacts, SkipCleanup: *keepClusters, Flavor: ptr.To(sno), ControlPlaneWaiters: waiters(),
			PostNamespaceCreated: createInputs(ctx),
		}
	})
})
