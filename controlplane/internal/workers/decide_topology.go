// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"slices"

	"github.com/blang/semver/v4"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// deploymentVersion is the version that a MachineDeployment of a topology gets, which all of its Nodes run already.
type deploymentVersion struct {
	deployment *clusterv1.MachineDeployment
	version    string
}

// decideDeployment gives a MachineDeployment of a topology the version that its Nodes run, and reports whether it does. OpenShift upgrades
// the Nodes of workers together with those of the control plane, so they have it before the topology asks for it. The topology controller
// takes such a MachineDeployment for one that is upgrading. As long as it does, it gives a new version neither to the MachineDeployment nor
// to the control plane: without this write both would wait for ever.
func (d *decision) decideDeployment(cluster *clusterv1.Cluster, g group) bool {
	version, joining := commonKubelet(g.sets)
	wanted := cluster.Spec.Topology.Version
	if !keepsServers(cluster, g.deployment) || !isUpwards(g.deployment.Spec.Template.Spec.Version, version) ||
		!isOnTheWay(version, wanted) || !controlPlaneRuns(cluster, version) {
		return false
	}
	if joining && version != wanted {
		// It comes with the version that its MachineDeployment has. With the last version nobody waits for it: there may be no host for it,
		// and until then the topology changes nothing of the MachineDeployment, not even the number of replicas.
		return false
	}
	d.deployments = append(d.deployments, deploymentVersion{deployment: g.deployment, version: version})
	return true
}

// keepsServers reports whether the topology of a Cluster chooses the version of a MachineDeployment, and does not ask for another strategy
// than OnDelete. The MachineDeployment has the strategy of before the upgrade until it has the version: with one that installs servers anew
// this write would set that off. One that a user has made beside the topology gets its version from that user.
func keepsServers(cluster *clusterv1.Cluster, deployment *clusterv1.MachineDeployment) bool {
	if _, owned := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned || !cluster.Spec.Topology.IsDefined() {
		return false
	}
	groups := cluster.Spec.Topology.Workers.MachineDeployments
	i := slices.IndexFunc(groups, func(g clusterv1.MachineDeploymentTopology) bool {
		return g.Name == deployment.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	})
	if i < 0 {
		return false
	}
	strategy := groups[i].Rollout.Strategy.Type
	return strategy == "" || strategy == clusterv1.OnDeleteMachineDeploymentStrategyType
}

// commonKubelet returns the version that all Nodes run, and whether a Machine has no Node yet. It is empty when they differ, and when there
// is none. Machines that go do not count.
func commonKubelet(sets []set) (version string, joining bool) {
	for _, s := range sets {
		for _, m := range s.machines {
			kubelet := view.KubeletVersion(m)
			switch {
			case !m.DeletionTimestamp.IsZero():
			case kubelet == "":
				joining = true
			case version != "" && version != kubelet:
				return "", joining
			default:
				version = kubelet
			}
		}
	}
	return version, joining
}

// isOnTheWay reports whether a topology that goes to the wanted version comes to this one, or past it. A version that differs from the
// wanted one in build metadata alone is not on the way: the topology would give the MachineDeployment the wanted one again.
func isOnTheWay(version, wanted string) bool {
	return version == wanted || compares(version, wanted, semver.Version.LT)
}

// controlPlaneRuns reports whether all Nodes of the control plane run a version or a newer one, so that workers do not come first. It looks
// at the copy in the Cluster, whose changes trigger a pass.
func controlPlaneRuns(cluster *clusterv1.Cluster, version string) bool {
	status := cluster.Status.ControlPlane
	if status == nil {
		return false
	}
	for _, v := range status.Versions {
		if v.Version != version && !isUpwards(version, v.Version) {
			return false
		}
	}
	return len(status.Versions) > 0
}
