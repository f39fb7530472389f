// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/test/e2e"
)

// sno is the flavor of single-node clusters: a spec that asks for one control-plane Machine gets a whole cluster.
const sno = "sno"

var _ = Describe("Cluster API's quick start", Label("quick-start"), func() {
	ctx := context.Background()
	e2e.QuickStartSpec(ctx, func() e2e.QuickStartSpecInput {
		return e2e.QuickStartSpecInput{
			E2EConfig: environment.config, ClusterctlConfigPath: environment.clusterctl, BootstrapClusterProxy: environment.management,
			ArtifactFolder: environment.artifacts, SkipCleanup: *keepClusters, Flavor: ptr.To(sno), ControlPlaneWaiters: waiters(),
			PostNamespaceCreated: createInputs(ctx),
		}
	})
})

var _ = Describe("Cluster API's scaling of a MachineDeployment", Label("md-scale"), func() {
	ctx := context.Background()
	e2e.MachineDeploymentScaleSpec(ctx, func() e2e.MachineDeploymentScaleSpecInput {
		return e2e.MachineDeploymentScaleSpecInput{
			E2EConfig: environment.config, ClusterctlConfigPath: environment.clusterctl, BootstrapClusterProxy: environment.management,
			ArtifactFolder: environment.artifacts, SkipCleanup: *keepClusters, Flavor: sno, ControlPlaneWaiters: waiters(),
			PostNamespaceCreated: createInputs(ctx),
		}
	})
})

var _ = Describe("Cluster API's remediation of a MachineDeployment", Label("md-remediation"), func() {
	ctx := context.Background()
	e2e.MachineDeploymentRemediationSpec(ctx, func() e2e.MachineDeploymentRemediationSpecInput {
		return e2e.MachineDeploymentRemediationSpecInput{
			E2EConfig: environment.config, ClusterctlConfigPath: environment.clusterctl, BootstrapClusterProxy: environment.management,
			ArtifactFolder: environment.artifacts, SkipCleanup: *keepClusters, ControlPlaneWaiters: waiters(),
			PostNamespaceCreated: createInputs(ctx),
		}
	})
})

var _ = Describe("Cluster API's deletion of a cluster in order", Label("cluster-deletion"), func() {
	ctx := context.Background()
	e2e.ClusterDeletionSpec(ctx, func() e2e.ClusterDeletionSpecInput {
		return e2e.ClusterDeletionSpecInput{
			E2EConfig: environment.config, ClusterctlConfigPath: environment.clusterctl, BootstrapClusterProxy: environment.management,
			ArtifactFolder: environment.artifacts, SkipCleanup: *keepClusters, Flavor: ptr.To(sno), ControlPlaneWaiters: waiters(),
			PostNamespaceCreated: createInputs(ctx), ClusterDeletionPhases: deletionPhases(),
		}
	})
})

// deletionPhases are those of Cluster API's own run of the spec, with our control plane and Metal3's cluster: first the workers go, then
// the control plane, then the infrastructure.
func deletionPhases() []e2e.ClusterDeletionPhase {
	const controlPlane, infrastructure, machine = "OpenshiftAssistedControlPlane", "Metal3Cluster", "Machine"
	return []e2e.ClusterDeletionPhase{
		phase(machine, []string{"MachineDeployment", "MachineSet"}, "MachineDeployment", "MachineSet"),
		phase(machine, []string{controlPlane}, controlPlane),
		phase(infrastructure, nil, infrastructure),
	}
}

// phase deletes objects of some kinds, and Machines that belong to one of owners; those of kind blocking hold it up.
func phase(blocking string, owners []string, kinds ...string) e2e.ClusterDeletionPhase {
	return e2e.ClusterDeletionPhase{
		ObjectFilter: func(object corev1.ObjectReference, references []metav1.OwnerReference) bool {
			owned := slices.ContainsFunc(references, func(o metav1.OwnerReference) bool { return slices.Contains(owners, o.Kind) })
			return object.Kind == "Machine" && owned || slices.Contains(kinds, object.Kind)
		},
		BlockingObjectFilter: func(object corev1.ObjectReference, _ []metav1.OwnerReference) bool { return object.Kind == blocking },
	}
}
