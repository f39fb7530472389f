// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// restful are the conditions of a control plane that has come to rest.
func restful() map[string]metav1.ConditionStatus {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	return map[string]metav1.ConditionStatus{
		controlplanev1.AvailableCondition: yes, controlplanev1.EtcdClusterHealthyCondition: yes,
		controlplanev1.ControlPlaneComponentsHealthyCondition: yes, controlplanev1.MachinesReadyCondition: yes,
		controlplanev1.RollingOutCondition: no, controlplanev1.ScalingUpCondition: no, controlplanev1.ScalingDownCondition: no,
		controlplanev1.RemediatingCondition: no, controlplanev1.UpgradingCondition: no,
	}
}

func settledControlPlane() *controlplanev1.OpenshiftAssistedControlPlane {
	cp := controlPlane()
	cp.Generation, cp.Status.ObservedGeneration, cp.Status.DistributionVersion = 2, 2, cp.Spec.DistributionVersion
	for conditionType, status := range restful() {
		conditions.Set(cp, metav1.Condition{Type: conditionType, Status: status, Reason: "Test"})
	}
	return cp
}

// TestSettled: a control plane has come to rest only if each of its conditions says so, and nothing was asked for since.
func TestSettled(t *testing.T) {
	g := NewWithT(t)
	g.Expect(view.Settled(settledControlPlane())).To(BeTrue())
	for conditionType, status := range restful() {
		for _, other := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			cp := settledControlPlane()
			conditions.Set(cp, metav1.Condition{Type: conditionType, Status: other, Reason: "Test"})
			g.Expect(view.Settled(cp)).To(Equal(other == status), "%s is %s", conditionType, other)
		}
		cp := settledControlPlane()
		conditions.Delete(cp, conditionType)
		g.Expect(view.Settled(cp)).To(BeFalse(), conditionType)
	}
	for name, change := range map[string]func(*controlplanev1.OpenshiftAssistedControlPlane){
		"it is being deleted":            func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.DeletionTimestamp = new(metav1.Now()) },
		"somebody has changed the spec":  func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Generation++ },
		"it does not run the release":    func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.DistributionVersion = "4.20.3" },
		"nobody knows which one it runs": func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.DistributionVersion = "" },
	} {
		cp := settledControlPlane()
		change(cp)
		g.Expect(view.Settled(cp)).To(BeFalse(), name)
	}
}
