// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/util"
)

// In the place of KCPAndMachineDeploymentRolloutSpec: a changed template replaces no worker before somebody deletes its Machine, or asks
// for a rolling replacement (docs/guides/workers.md).
var _ = Describe("Rolling out a MachineDeployment", Label("md-rollout"), func() {
	ctx := context.Background()
	s := newOwnSpec(ctx, "md-rollout")
	It("Should replace workers whose Machines are deleted, and all of them with RollingUpdate", func() {
		s.createCluster(ctx, 2) //nolint:mnd // one after the other
		before := s.servers(ctx)

		By("Changing what Cluster API propagates in place")
		framework.UpgradeMachineDeploymentInPlaceMutableFieldsAndWait(ctx, framework.UpgradeMachineDeploymentInPlaceMutableFieldsAndWaitInput{
			ClusterProxy: s.management, Cluster: s.resources.Cluster, MachineDeployments: s.resources.MachineDeployments,
			WaitForMachinesToBeUpgraded: s.intervals("wait-machine-upgrade"),
		})
		Expect(s.servers(ctx)).To(Equal(before), "no Machine was replaced")

		outdated := s.workers(ctx)
		template := s.changeTemplate(ctx)
		s.expectOutdated(ctx, outdated)
		Expect(s.servers(ctx)).To(Equal(before), "with OnDelete no Machine is replaced")
		for i := range outdated {
			s.replace(ctx, &outdated[i])
		}
		s.expectRolledOut(ctx, outdated, template)

		outdated = s.workers(ctx)
		s.changeStrategy(ctx)
		By("Changing the template under RollingUpdate")
		framework.UpgradeMachineDeploymentInfrastructureRefAndWait(ctx, framework.UpgradeMachineDeploymentInfrastructureRefAndWaitInput{
			ClusterProxy: s.management, Cluster: s.resources.Cluster, MachineDeployments: s.resources.MachineDeployments,
			WaitForMachinesToBeUpgraded: s.intervals("wait-machine-upgrade"),
		})
		s.expectRolledOut(ctx, outdated, s.resources.MachineDeployments[0].Spec.Template.Spec.InfrastructureRef.Name)
		s.expectControlPlaneKept(ctx, before)
	})
})

// changeTemplate gives the MachineDeployment another Metal3MachineTemplate, and returns its name.
func (s *ownSpec) changeTemplate(ctx context.Context) string {
	GinkgoHelper()
	By("Changing the template of the MachineDeployment")
	c, deployment := s.management.GetClient(), s.resources.MachineDeployments[0]
	template, err := external.GetObjectFromContractVersionedRef(ctx, c, deployment.Spec.Template.Spec.InfrastructureRef, deployment.Namespace)
	Expect(err).NotTo(HaveOccurred())
	template.SetName(deployment.Name + "-" + util.RandomString(6)) //nolint:mnd // as the framework does
	template.SetResourceVersion("")
	Expect(c.Create(ctx, template)).To(Succeed())
	before := deployment.DeepCopy()
	deployment.Spec.Template.Spec.InfrastructureRef.Name = template.GetName()
	Expect(c.Patch(ctx, deployment, client.MergeFrom(before))).To(Succeed())
	return template.GetName()
}

// changeStrategy has Cluster API replace the Machines, with the host that is to spare.
func (s *ownSpec) changeStrategy(ctx context.Context) {
	GinkgoHelper()
	deployment := s.resources.MachineDeployments[0]
	Expect(deployment.Spec.Rollout.Strategy.Type).To(Equal(clusterv1.OnDeleteMachineDeploymentStrategyType))
	before := deployment.DeepCopy()
	deployment.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
		Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		},
	}
	Expect(s.management.GetClient().Patch(ctx, deployment, client.MergeFrom(before))).To(Succeed())
}

// expectOutdated waits until Machines say that they are not of the current template.
func (s *ownSpec) expectOutdated(ctx context.Context, machines []clusterv1.Machine) {
	GinkgoHelper()
	By("Waiting until the Machines are outdated")
	c := s.management.GetClient()
	Eventually(func(g Gomega) {
		for i := range machines {
			machine := &clusterv1.Machine{}
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(&machines[i]), machine)).To(Succeed())
			g.Expect(meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineUpToDateCondition)).To(BeTrue(), machine.Name)
		}
	}, s.intervals("wait-machine-upgrade")...).Should(Succeed())
}

// replace deletes a Machine, and waits until another one has taken its place.
func (s *ownSpec) replace(ctx context.Context, machine *clusterv1.Machine) {
	GinkgoHelper()
	By("Deleting Machine " + machine.Name)
	count := len(s.workers(ctx))
	Expect(s.management.GetClient().Delete(ctx, machine)).To(Succeed())
	Eventually(func(g Gomega) {
		workers := s.workers(ctx)
		g.Expect(names(workers)).To(And(HaveLen(count), Not(ContainElement(machine.Name))))
		for i := range workers {
			g.Expect(meta.IsStatusConditionTrue(workers[i].Status.Conditions, clusterv1.MachineReadyCondition)).To(BeTrue(), workers[i].Name)
		}
	}, s.intervals("wait-machine-upgrade")...).Should(Succeed())
}

// expectRolledOut waits until all workers are of a template, none of the outdated ones is left, and their hosts are free.
func (s *ownSpec) expectRolledOut(ctx context.Context, outdated []clusterv1.Machine, template string) {
	GinkgoHelper()
	By("Verify that all workers are of Metal3MachineTemplate " + template)
	c := s.management.GetClient()
	Eventually(func(g Gomega) {
		workers := s.workers(ctx)
		g.Expect(workers).To(HaveLen(len(outdated)))
		for i := range workers {
			worker := &workers[i]
			g.Expect(names(outdated)).NotTo(ContainElement(worker.Name))
			g.Expect(meta.IsStatusConditionTrue(worker.Status.Conditions, clusterv1.MachineUpToDateCondition)).To(BeTrue(), worker.Name)
			infrastructure, err := external.GetObjectFromContractVersionedRef(ctx, c, worker.Spec.InfrastructureRef, worker.Namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(infrastructure.GetAnnotations()).To(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, template))
		}
		s.expectHosts(ctx, g)
	}, s.intervals("wait-machine-upgrade")...).Should(Succeed())
	s.expectRunning(ctx)
}

// expectHosts expects a host for each Machine, and that all others are available.
func (s *ownSpec) expectHosts(ctx context.Context, g Gomega) {
	c := s.management.GetClient()
	machines, hosts := &clusterv1.MachineList{}, &bmov1alpha1.BareMetalHostList{}
	g.Expect(c.List(ctx, machines, client.InNamespace(s.namespace.Name))).To(Succeed())
	g.Expect(c.List(ctx, hosts, client.InNamespace(s.namespace.Name))).To(Succeed())
	used := 0
	for i := range hosts.Items {
		if hosts.Items[i].Spec.ConsumerRef != nil {
			used++
			continue
		}
		g.Expect(hosts.Items[i].Status.Provisioning.State).To(Equal(bmov1alpha1.StateAvailable), "BareMetalHost %s", hosts.Items[i].Name)
	}
	g.Expect(used).To(Equal(len(machines.Items)), "hosts that are in use")
}

// expectControlPlaneKept expects that of the servers before only workers have gone.
func (s *ownSpec) expectControlPlaneKept(ctx context.Context, before map[string]server) {
	GinkgoHelper()
	cluster, after := s.resources.Cluster, s.servers(ctx)
	machines := framework.GetControlPlaneMachinesByCluster(ctx, framework.GetControlPlaneMachinesByClusterInput{
		Lister: s.management.GetClient(), ClusterName: cluster.Name, Namespace: cluster.Namespace,
	})
	Expect(machines).NotTo(BeEmpty())
	for _, name := range names(machines) {
		Expect(after).To(HaveKeyWithValue(name, before[name]))
	}
}

func names(machines []clusterv1.Machine) []string {
	names := make([]string, 0, len(machines))
	for i := range machines {
		names = append(names, machines[i].Name)
	}
	return names
}
