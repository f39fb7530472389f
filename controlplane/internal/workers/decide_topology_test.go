// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// topology is a Cluster whose topology wants a version, and whose control-plane Nodes run others.
func topology(wants string, runs ...string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: wants}
	c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "workers"}}
	c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{}
	for _, version := range runs {
		c.Status.ControlPlane.Versions = append(c.Status.ControlPlane.Versions, clusterv1.StatusVersion{Version: version, Replicas: 1})
	}
	return c
}

// topologyLabels are those of the MachineDeployment of its only group.
func topologyLabels() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel: "demo", clusterv1.ClusterTopologyOwnedLabel: "",
		clusterv1.ClusterTopologyMachineDeploymentNameLabel: "workers",
	}
}

// TestDecideTopology: the MachineDeployment of a topology has the version from before the upgrade.
func TestDecideTopology(t *testing.T) {
	const last = "v1.35.2"
	upgraded := func(name string) *clusterv1.Machine { return machine(name, before, wanted) }
	both := []set{machineSet("a", before, upgraded("a0"), upgraded("a1"))}
	type change = func(*clusterv1.MachineDeployment, []set)
	for _, tt := range []struct {
		name    string
		cluster *clusterv1.Cluster
		sets    []set
		change  change
		version string
	}{
		{name: "all Nodes run what the topology wants", cluster: topology(wanted, wanted), sets: both, version: wanted},
		{name: "all Nodes run a version on its way", cluster: topology(last, wanted), sets: both, version: wanted},
		{name: "the control plane is further", cluster: topology(last, last), sets: both, version: wanted},
		{name: "the control plane is not there yet", cluster: topology(wanted, wanted, before), sets: both},
		{name: "of the control plane nothing is known", cluster: topology(wanted), sets: both},
		{name: "there is no control plane", cluster: func() *clusterv1.Cluster {
			c := topology(wanted)
			c.Status.ControlPlane = nil
			return c
		}(), sets: both},
		{name: "the topology wants no upgrade", cluster: topology(before, wanted), sets: both},
		{name: "the topology wants what differs in build metadata", cluster: topology(wanted+"+3b9f8b6", wanted), sets: both},
		{
			name: "one Node is not there yet", cluster: topology(wanted, wanted),
			sets: []set{machineSet("a", before, upgraded("a0"), machine("a1", before, before))},
		},
		{
			name: "a Machine has no Node", cluster: topology(wanted, wanted),
			sets: []set{machineSet("a", before, upgraded("a0"), machine("a1", before, ""))}, version: wanted,
		},
		{
			name: "a Machine has no Node, and the version is on the way", cluster: topology(last, wanted),
			sets: []set{machineSet("a", before, upgraded("a0"), machine("a1", before, ""))},
		},
		{
			name: "no Machine has a Node", cluster: topology(wanted, wanted), sets: []set{machineSet("a", before, machine("a0", before, ""))},
		},
		{
			name: "a Machine of another MachineSet is not there yet", cluster: topology(wanted, wanted),
			sets: []set{machineSet("a", before, upgraded("a0")), machineSet("b", before, machine("b0", before, before))},
		},
		{
			name: "a Machine that goes is not waited for", cluster: topology(wanted, wanted),
			sets: []set{machineSet("a", before, upgraded("a0"), machine("a1", before, before))}, version: wanted,
			change: func(_ *clusterv1.MachineDeployment, s []set) {
				s[0].machines[1].DeletionTimestamp = ptr.To(metav1.Now())
			},
		},
		{name: "there are no Machines", cluster: topology(wanted, wanted), sets: []set{machineSet("a", before)}},
		{
			name: "the Nodes run what the MachineDeployment wants", cluster: topology(last, last),
			sets: []set{machineSet("a", before, machine("a0", before, before))},
		},
		{
			name: "the Nodes went back", cluster: topology(last, last), sets: []set{machineSet("a", before, machine("a0", before, "v1.32.7"))},
		},
		{name: "what the topology wants is no version", cluster: topology("latest", wanted), sets: both},
		{name: "a Cluster without a topology", cluster: func() *clusterv1.Cluster {
			c := topology("", wanted)
			c.Spec.Topology = clusterv1.Topology{}
			return c
		}(), sets: both},
		{
			name: "a MachineDeployment beside the topology", cluster: topology(wanted, wanted), sets: both,
			change: func(d *clusterv1.MachineDeployment, _ []set) { delete(d.Labels, clusterv1.ClusterTopologyOwnedLabel) },
		},
		{name: "the topology asks for OnDelete", cluster: func() *clusterv1.Cluster {
			c := topology(wanted, wanted)
			c.Spec.Topology.Workers.MachineDeployments[0].Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
			return c
		}(), sets: both, version: wanted},
		{name: "the topology asks for RollingUpdate, which the MachineDeployment does not have yet", cluster: func() *clusterv1.Cluster {
			c := topology(wanted, wanted)
			c.Spec.Topology.Workers.MachineDeployments[0].Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
			return c
		}(), sets: both},
		{name: "the topology has the group no more", cluster: func() *clusterv1.Cluster {
			c := topology(wanted, wanted)
			c.Spec.Topology.Workers.MachineDeployments[0].Name = "others"
			return c
		}(), sets: both},
		{
			name: "RollingUpdate", cluster: topology(wanted, wanted), sets: both,
			change: func(d *clusterv1.MachineDeployment, _ []set) {
				d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := deployment()
			d.Labels = topologyLabels()
			d.Spec.Template.Spec.Version = before
			if tt.change != nil {
				tt.change(d, tt.sets)
			}
			got := decide(tt.cluster, []group{{deployment: d, sets: tt.sets}})
			g := NewWithT(t)
			g.Expect(got.machines).To(BeEmpty())
			g.Expect(got.sets).To(BeEmpty())
			if tt.version == "" {
				g.Expect(got.deployments).To(BeEmpty())
				return
			}
			g.Expect(got.deployments).To(Equal([]deploymentVersion{{deployment: d, version: tt.version}}))
		})
	}
}
