// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const (
	hostsInstalled = "the control-plane hosts were installed: the cluster may be repairable, and may hold data"
	notSaid        = "assisted-service does not say whether the control-plane host of Machine cp-1 was installed: if it was, the cluster " +
		"may be repairable, and may hold data"
)

// remembered is what status says of an attempt that was seen to install the operators of its cluster.
func remembered(attempt int32) controlplanev1.InstallStatus {
	return controlplanev1.InstallStatus{Attempt: &attempt, FinalizingTime: metav1.NewTime(failedAt.Add(-time.Hour))}
}

// TestNoRetryOfWhatMayHoldData: an attempt that may have reached the operators of its cluster is not begun again by itself, although
// assisted-service has turned its hosts to errors; whatever else is known of it.
func TestNoRetryOfWhatMayHoldData(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*view.View)
		want   string
	}{
		"an earlier pass has seen the phase": {func(v *view.View) { v.ControlPlane.Status.Install = remembered(1) }, hostsInstalled},
		"nobody has seen the phase, and the percentage tells": {func(v *view.View) {
			v.Install.AgentClusterInstall.Status.Progress.TotalPercentage = 80
		}, hostsInstalled},
		"nobody has seen the phase, and a stage tells": {func(v *view.View) {
			v.Install.Agents[1].Status.Progress.CurrentStage = "Done"
		}, "the control-plane host of Machine cp-1 was installed: the cluster may be repairable"},
		"its host is not turned to an error yet": {func(v *view.View) {
			v.Install.Agents[1].Status.Conditions = []assisted.Condition{{Type: assisted.ConditionInstalled, Status: corev1.ConditionTrue}}
		}, "the control-plane host of Machine cp-1 was installed: the cluster may be repairable"},
		"the Agent of a host is gone": {func(v *view.View) {
			v.Install.Agents = append(v.Install.Agents[:1:1], v.Install.Agents[2])
		}, notSaid},
		"the Agent of a host is unbound": {func(v *view.View) { v.Install.Agents[1].Spec.ClusterDeploymentName = nil }, notSaid},
		"the Agent of a host tells nothing": {func(v *view.View) {
			v.Install.Agents[1].Status = assisted.AgentStatus{}
		}, notSaid},
		"the Agent of a host is in a state that nobody knows": {func(v *view.View) {
			v.Install.Agents[1].Status.Conditions[0].Status = corev1.ConditionUnknown
		}, notSaid},
		"the Agent is that of an earlier Machine of that name": {func(v *view.View) {
			v.Install.Agents[1].Annotations = map[string]string{bootstrapv1.ClaimAnnotation: "cp-1/another"}
		}, notSaid},
	} {
		t.Run(name, func(t *testing.T) {
			expectBlocked(t, test.change, HavePrefix(test.want))
		})
	}
}

// TestRetryOfWhatHoldsNoData: what is not about the control-plane hosts of the attempt that has failed keeps no other from beginning.
func TestRetryOfWhatHoldsNoData(t *testing.T) {
	for name, change := range map[string]func(*view.View){
		"an earlier attempt has reached the phase": func(v *view.View) {
			numbered := map[string]string{controlplanev1.InstallAttemptAnnotation: "2"}
			v.ControlPlane.Annotations = map[string]string{
				controlplanev1.InstallAttemptAnnotation:     "2",
				controlplanev1.InstallationFailedAnnotation: plan.Failed{Attempt: "2", Time: failedAt}.String(),
			}
			v.Install.AgentClusterInstall.Annotations, v.ControlPlane.Status.Install = numbered, remembered(1)
		},
		"not all hosts were installed": func(v *view.View) { v.Install.AgentClusterInstall.Status.Progress.TotalPercentage = 79 },
		"a worker is installed": func(v *view.View) {
			worker := v.Install.Agents[0].DeepCopy()
			worker.Name, worker.Spec.Role, worker.Annotations = "worker", assisted.RoleWorker, nil
			worker.Status.Progress.CurrentStage = "Done"
			v.Install.Agents = append(v.Install.Agents, worker)
		},
		"the hosts are not turned to errors yet": func(v *view.View) {
			for _, agent := range v.Install.Agents {
				agent.Status.Conditions[0].Reason = assisted.ReasonInstallationInProgress
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := failedView(2)
			v.Now = failedAt.Add(time.Hour)
			change(v)
			NewWithT(t).Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{Now: true}))
		})
	}
}

// TestReachedFinalizing: in the phase itself, and after it.
func TestReachedFinalizing(t *testing.T) {
	inProgress := func(v *view.View, state string) {
		v.Install.AgentClusterInstall.Status.Conditions = nil
		condition(v, hiveext.ClusterCompletedCondition, corev1.ConditionFalse, hiveext.ClusterInstallationInProgressReason, "")
		v.Install.AgentClusterInstall.Status.DebugInfo.State = state
	}
	for name, test := range map[string]struct {
		change func(*view.View)
		want   bool
	}{
		"hosts are being installed":     {func(v *view.View) { inProgress(v, assisted.ClusterStateInstalling) }, false},
		"operators are being installed": {func(v *view.View) { inProgress(v, assisted.ClusterStateFinalizing) }, true},
		"a host waits for somebody afterwards": {func(v *view.View) {
			inProgress(v, assisted.ClusterStateInstallingPending)
			v.ControlPlane.Status.Install = remembered(1)
		}, true},
		"it is complete": {func(v *view.View) {
			v.Install.AgentClusterInstall.Status.Conditions = nil
			condition(v, hiveext.ClusterCompletedCondition, corev1.ConditionTrue, hiveext.ClusterInstalledReason, "")
			v.ControlPlane.Status.Install = remembered(1)
		}, false},
		"it has failed": {func(*view.View) {}, false},
		"it has failed with all hosts installed": {func(v *view.View) {
			v.Install.AgentClusterInstall.Status.Progress.TotalPercentage = 95
		}, true},
		"it has failed, and an earlier pass has seen the phase": {func(v *view.View) {
			v.ControlPlane.Status.Install = remembered(1)
		}, true},
		"there is no AgentClusterInstall":           {func(v *view.View) { v.Install.AgentClusterInstall = nil }, false},
		"status was written for an earlier attempt": {func(v *view.View) { v.ControlPlane.Status.Install = remembered(7) }, false},
		"status has no number": {func(v *view.View) {
			v.ControlPlane.Status.Install.FinalizingTime = metav1.NewTime(failedAt)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := failedView(1)
			test.change(v)
			NewWithT(t).Expect(plan.ReachedFinalizing(v)).To(Equal(test.want))
		})
	}
}
