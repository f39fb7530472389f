// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// cutOff takes the installed API away. What needs no installed cluster is told while the grace period goes by.
func (s *story) cutOff(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(s.world.Workload.Down(s.install(), 0)).To(Succeed())
}

func (s *story) apiLost(t *testing.T) {
	eventually(t, detectTimeout, func(g Gomega) {
		controlPlane, cluster := s.controlPlane(g), s.cluster(g)
		expect(g, controlPlane, controlplanev1.AvailableCondition, metav1.ConditionFalse)
		g.Expect(conditions.GetReason(controlPlane, controlplanev1.AvailableCondition)).To(Equal(controlplanev1.ConnectionDownReason))
		for _, condition := range []string{controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition} {
			expect(g, controlPlane, condition, metav1.ConditionUnknown)
			g.Expect(conditions.GetReason(controlPlane, condition)).To(Equal(controlplanev1.EtcdClusterConnectionDownReason))
		}
		expect(g, cluster, clusterv1.ClusterControlPlaneAvailableCondition, metav1.ConditionFalse)
		expect(g, cluster, clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionFalse)
	})
	g := NewWithT(t)
	controlPlane, cluster := s.controlPlane(g), s.cluster(g)
	g.Expect(controlPlane.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
	expect(g, controlPlane, controlplanev1.InitializedCondition, metav1.ConditionTrue)
	expect(g, cluster, clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionTrue)
}

func (s *story) apiBack(t *testing.T) {
	NewWithT(t).Expect(s.world.Workload.Up(s.install())).To(Succeed())
	eventually(t, settleTimeout, func(g Gomega) {
		controlPlane, cluster := s.controlPlane(g), s.cluster(g)
		expect(g, controlPlane, controlplanev1.AvailableCondition, metav1.ConditionTrue)
		expect(g, controlPlane, controlplanev1.EtcdClusterHealthyCondition, metav1.ConditionTrue)
		expect(g, cluster, clusterv1.ClusterControlPlaneAvailableCondition, metav1.ConditionTrue)
		expect(g, cluster, clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionTrue)
	})
}
