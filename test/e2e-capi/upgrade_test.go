// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/framework"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// In the place of ClusterUpgradeConformanceSpec: OpenShift is upgraded in place, and Machines follow their Nodes.
var _ = Describe("Upgrading a cluster in place", Label("upgrade"), func() {
	ctx := context.Background()
	s := newOwnSpec(ctx, "upgrade")
	It("Should bring control plane and workers to another release, and replace no Machine", func() {
		s.createCluster(ctx, 1)
		before := s.servers(ctx)
		release := environment.config.MustGetVariable("OPENSHIFT_VERSION_UPGRADE_TO")
		version := environment.config.MustGetVariable("KUBERNETES_VERSION_UPGRADE_TO")

		s.upgradeControlPlane(ctx, release, version)
		By("Upgrading the MachineDeployment")
		framework.UpgradeMachineDeploymentsAndWait(ctx, framework.UpgradeMachineDeploymentsAndWaitInput{
			ClusterProxy: s.management, Cluster: s.resources.Cluster, UpgradeVersion: version,
			MachineDeployments: s.resources.MachineDeployments, WaitForMachinesToBeUpgraded: s.intervals("wait-machine-upgrade"),
		})
		s.expectVersion(ctx, version)
		s.expectRunning(ctx)
		Expect(s.servers(ctx)).To(Equal(before), "an upgrade replaces no Machine and no Node")
	})
})

// upgradeControlPlane sets both versions as a user does (docs/guides/upgrade.md), and waits until the cluster has come to the release.
func (s *ownSpec) upgradeControlPlane(ctx context.Context, release, version string) {
	GinkgoHelper()
	By("Upgrading the control plane to " + release)
	c := s.management.GetClient()
	controlPlane := controlPlaneOf(ctx, Default, c, s.resources.Cluster)
	Expect(controlPlane.Status.DistributionVersion).NotTo(Equal(release), "the cluster has to be installed with another release")
	before := controlPlane.DeepCopy()
	controlPlane.Spec.DistributionVersion, controlPlane.Spec.Version = release, version
	Expect(c.Patch(ctx, controlPlane, client.MergeFrom(before))).To(Succeed())
	Eventually(func(g Gomega) {
		controlPlane := controlPlaneOf(ctx, g, c, s.resources.Cluster)
		upgrading := meta.FindStatusCondition(controlPlane.Status.Conditions, controlplanev1.UpgradingCondition)
		g.Expect(controlPlane.Status.DistributionVersion).To(Equal(release), "the condition Upgrading: %+v", upgrading)
		g.Expect(meta.IsStatusConditionFalse(controlPlane.Status.Conditions, controlplanev1.UpgradingCondition)).To(BeTrue(), "%+v", upgrading)
		match := meta.FindStatusCondition(controlPlane.Status.Conditions, controlplanev1.VersionsMatchCondition)
		g.Expect(match).NotTo(HaveField("Status", metav1.ConditionFalse), "the fields have to be of one release")
		g.Expect(meta.IsStatusConditionTrue(controlPlane.Status.Conditions, controlplanev1.AvailableCondition)).To(BeTrue())
	}, s.intervals("wait-control-plane-upgrade")...).Should(Succeed())
}

// expectVersion waits until all Machines and their Nodes have a version, and no MachineSet of another one is left.
func (s *ownSpec) expectVersion(ctx context.Context, version string) {
	GinkgoHelper()
	By("Verify that Machines, Nodes and MachineSets have version " + version)
	c, cluster := s.management.GetClient(), s.resources.Cluster
	workload := s.management.GetWorkloadCluster(ctx, cluster.Namespace, cluster.Name).GetClient()
	Eventually(func(g Gomega) {
		machines, nodes, machineSets := &clusterv1.MachineList{}, &corev1.NodeList{}, &clusterv1.MachineSetList{}
		g.Expect(c.List(ctx, machines, client.InNamespace(cluster.Namespace))).To(Succeed())
		for i := range machines.Items {
			machine := &machines.Items[i]
			g.Expect(machine.Spec.Version).To(Equal(version), "Machine %s", machine.Name)
			upToDate := meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineUpToDateCondition)
			g.Expect(upToDate).To(BeTrue(), "Machine %s is not up to date", machine.Name)
		}
		g.Expect(workload.List(ctx, nodes)).To(Succeed())
		g.Expect(nodes.Items).To(HaveLen(len(machines.Items)))
		for i := range nodes.Items {
			g.Expect(nodes.Items[i].Status.NodeInfo.KubeletVersion).To(Equal(version), "Node %s", nodes.Items[i].Name)
		}
		g.Expect(c.List(ctx, machineSets, client.InNamespace(cluster.Namespace))).To(Succeed())
		g.Expect(machineSets.Items).To(HaveLen(1), "the MachineSet of the version before has followed, and the empty one has gone")
		g.Expect(machineSets.Items[0].Spec.Template.Spec.Version).To(Equal(version), "MachineSet %s", machineSets.Items[0].Name)
	}, s.intervals("wait-machine-upgrade")...).Should(Succeed())
}
