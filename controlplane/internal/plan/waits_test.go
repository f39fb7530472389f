// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// atRest is an installed cluster in which nothing goes on.
func atRest() *view.View {
	v := installedView(4)
	cp := v.ControlPlane
	cp.Spec.Replicas, cp.Status.Initialization.ControlPlaneInitialized = new(int32(3)), new(true)
	v.Now = noon
	answering(v)
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for conditionType, status := range map[string]metav1.ConditionStatus{
		controlplanev1.AvailableCondition: yes, controlplanev1.EtcdClusterHealthyCondition: yes,
		controlplanev1.ControlPlaneComponentsHealthyCondition: yes, controlplanev1.MachinesReadyCondition: yes,
		controlplanev1.RollingOutCondition: no, controlplanev1.ScalingUpCondition: no, controlplanev1.ScalingDownCondition: no,
		controlplanev1.RemediatingCondition: no, controlplanev1.UpgradingCondition: no,
	} {
		conditions.Set(cp, metav1.Condition{Type: conditionType, Status: status, Reason: "Test"})
	}
	return v
}

// TestWaits: every change in the installed cluster is to be known at once whenever something goes on that depends on it.
func TestWaits(t *testing.T) {
	g := NewWithT(t)
	g.Expect(plan.Waits(atRest())).To(BeFalse())
	for name, change := range map[string]func(*view.View){
		"the cluster is not installed":      func(v *view.View) { v.Life = view.Deleting },
		"nobody has reached it yet":         func(v *view.View) { v.ControlPlane.Status.Initialization.ControlPlaneInitialized = nil },
		"the control plane has not settled": func(v *view.View) { v.ControlPlane.Generation++ },
		"a release is being installed":      func(v *view.View) { v.Workload.Version.History = make([]workload.PastRelease, 1) },
		"a Machine is to come":              func(v *view.View) { v.ControlPlane.Spec.Replicas = new(int32(5)) },
		"a Machine is to be replaced":       func(v *view.View) { markUnhealthy(v, "cp-0") },
	} {
		v := atRest()
		change(v)
		g.Expect(plan.Waits(v)).To(BeTrue(), name)
	}
}
