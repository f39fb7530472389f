// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

type (
	waitInput  = clusterctl.ApplyCustomClusterTemplateAndWaitInput
	waitResult = clusterctl.ApplyCustomClusterTemplateAndWaitResult
)

// waiters wait for a control plane of ours: those of the framework know none but kubeadm's.
func waiters() clusterctl.ControlPlaneWaiters {
	return clusterctl.ControlPlaneWaiters{
		WaitForControlPlaneInitialized: func(ctx context.Context, input waitInput, result *waitResult) {
			GinkgoHelper()
			c := input.ClusterProxy.GetClient()
			Eventually(func(g Gomega) {
				initialization := controlPlaneOf(ctx, g, c, result.Cluster).Status.Initialization
				g.Expect(initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
			}, input.WaitForControlPlaneIntervals...).Should(Succeed())
		},
		WaitForControlPlaneMachinesReady: func(ctx context.Context, input waitInput, result *waitResult) {
			GinkgoHelper()
			c := input.ClusterProxy.GetClient()
			Eventually(func(g Gomega) {
				controlPlane := controlPlaneOf(ctx, g, c, result.Cluster)
				g.Expect(meta.IsStatusConditionTrue(controlPlane.Status.Conditions, "Available")).To(BeTrue())
				machines := &clusterv1.MachineList{}
				g.Expect(c.List(ctx, machines, client.InNamespace(result.Cluster.Namespace), client.MatchingLabels{
					clusterv1.ClusterNameLabel: result.Cluster.Name, clusterv1.MachineControlPlaneLabel: "",
				})).To(Succeed())
				g.Expect(machines.Items).To(HaveLen(int(ptr.Deref(controlPlane.Spec.Replicas, 0))))
				for i := range machines.Items {
					g.Expect(machines.Items[i].Status.NodeRef.IsDefined()).To(BeTrue())
					g.Expect(meta.IsStatusConditionTrue(machines.Items[i].Status.Conditions, clusterv1.ReadyCondition)).To(BeTrue())
				}
			}, input.WaitForControlPlaneIntervals...).Should(Succeed())
		},
	}
}

func controlPlaneOf(
	ctx context.Context,
	g Gomega,
	c client.Client,
	cluster *clusterv1.Cluster,
) *controlplanev1.OpenshiftAssistedControlPlane {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
	g.Expect(c.Get(ctx, key, controlPlane)).To(Succeed())
	return controlPlane
}
