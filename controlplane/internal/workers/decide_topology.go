// SPDX-License-Identifier: Apache-2.0

package workers

import (
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
// then takes the MachineDeployment for one that is upgrading, and gives neither it nor the control plane another version until it is not
// any more: without this write both would wait for ever.
func (d *decision) decideDeployment(cluster *clusterv1.Cluster, g group) bool {
	version := commonKubelet(g.sets)
	if !isOfTopology(cluster, g.deployment) || !isUpwards(g.deployment.Spec.Template.Spec.Version, version) ||
		!isOnTheWay(version, cluster.Spec.Topology.Version) || !controlPlaneRuns(cluster, version) {
		return false
	}
	d.deployments = append(d.deployments, deploymentVersion{deployment: g.deployment, version: version})
	return true
}

// isOfTopology reports whether the topology of a Cluster chooses the version of a MachineDeployment. One that a user has made beside the
// topology gets its version from that user.
func isOfTopology(cluster *clusterv1.Cluster, deployment *clusterv1.MachineDeployment) bool {
	_, owned := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]
	return owned && cluster.Spec.Topology.IsDefined()
}

// commonKubelet returns the version that the Nodes of all Machines run; empty when they differ, when one has no Node yet, and when there is
// no Machine but those that go.
func commonKubelet(sets []set) string {
	version := ""
	for _, s := range sets {
		for _, m := range s.machines {
			kubelet := view.KubeletVersion(m)
			switch {
			case !m.DeletionTimestamp.IsZero():
			case kubelet == "" || version != "" && version != kubelet:
				return ""
			default:
				version = kubelet
			}
		}
	}
	return version
}

// isOnTheWay reports whether a topology comes to a version, or past it, on its way to the one that it wants. Versions that differ in build
// metadata alone have no order: the topology would set the MachineDeployment back.
func isOnTheWay(version, wanted string) bool {
	older, err := semver.ParseTolerant(version)
	if err != nil {
		return false
	}
	newer, err := semver.ParseTolerant(wanted)
	return err == nil && (version == wanted || older.LT(newer))
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
