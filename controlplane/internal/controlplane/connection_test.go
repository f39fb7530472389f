// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// followMachineClock sets the clock after that of the machine, whose times conditions have.
func (w *world) followMachineClock() { w.now = time.Now().Add(24 * time.Hour).Truncate(time.Second) }

// takeOver lets another manager act from now on: it was started long ago, waited for its Lease, and has probed nothing.
func (w *world) takeOver() {
	w.followMachineClock()
	w.r.leading = manager.Leadership{}
	w.api.ID, w.api.Last, w.api.Reported = "", time.Time{}, nil
}

func TestANewLeaderHasNotProbedYet(t *testing.T) {
	health := []string{
		controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
	}
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	w.reconcile()
	expect := func(status metav1.ConditionStatus, because string) {
		t.Helper()
		for _, condition := range health {
			c := conditions.Get(w.controlPlane(), condition)
			g.Expect(c.Status).To(Equal(status), "%s, %s is %s: %s", because, condition, c.Reason, c.Message)
		}
	}
	w.takeOver()
	w.reconcile()
	expect(metav1.ConditionTrue, "before the first probe")
	w.now = w.now.Add(w.r.RemoteConditionsGracePeriod)
	w.reconcile()
	expect(metav1.ConditionTrue, "within the grace period")
	w.now = w.now.Add(time.Second)
	w.reconcile()
	g.Expect(w.reason(controlplanev1.AvailableCondition)).To(Equal(controlplanev1.ConnectionDownReason))
}

func TestAnswerIsExpectedSince(t *testing.T) {
	leading := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := metav1.NewTime(leading.Add(time.Hour))
	for name, tt := range map[string]struct {
		condition metav1.Condition
		want      time.Time
	}{
		"the manager acts":               {metav1.Condition{Type: controlplanev1.InitializedCondition, Status: metav1.ConditionFalse}, leading},
		"the cluster is initialized":     {metav1.Condition{Type: controlplanev1.InitializedCondition, Status: metav1.ConditionTrue}, later.Time},
		"it is not paused any more":      {metav1.Condition{Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse}, later.Time},
		"the manager acts, it is paused": {metav1.Condition{Type: clusterv1.PausedCondition, Status: metav1.ConditionTrue}, leading},
	} {
		t.Run(name, func(t *testing.T) {
			tt.condition.Reason, tt.condition.LastTransitionTime = "Test", later
			cp := &controlplanev1.OpenshiftAssistedControlPlane{}
			conditions.Set(cp, tt.condition)
			NewWithT(t).Expect(answerExpectedSince(cp, leading)).To(Equal(tt.want))
		})
	}
}
