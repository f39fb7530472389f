// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// failedAt is when the attempt of failedView has failed.
var failedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// failedView is a control plane of three hosts whose first attempt has failed, which is recorded, and which may have so many retries.
func failedView(retries int32) *view.View {
	attempt := map[string]string{controlplanev1.InstallAttemptAnnotation: "1"}
	v := &view.View{
		ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"}},
		Life:         view.Failed, Now: failedAt.Add(10 * time.Minute),
	}
	v.ControlPlane.Spec.Replicas, v.ControlPlane.Spec.Install.Retries = new(int32(3)), &retries
	v.ControlPlane.Annotations = map[string]string{
		controlplanev1.InstallationFailedAnnotation: plan.Failed{Attempt: "1", Time: failedAt}.String(),
	}
	v.Install.ClusterDeployment = &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: attempt}}
	v.Install.AgentClusterInstall = &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Annotations: attempt}}
	condition(v, hiveext.ClusterFailedCondition, corev1.ConditionTrue, hiveext.ClusterInstallationFailedReason, "")
	v.Machines.Owned, v.Machines.Configs = collections.New(), map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	for _, name := range []string{"cp-0", "cp-1", "cp-2"} {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Annotations: attempt}}
		v.Machines.Owned.Insert(machine)
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		config.Status.Conditions = []metav1.Condition{{Type: bootstrapv1.HostHealthyCondition, Status: metav1.ConditionTrue}}
		v.Machines.Configs[name] = config
		agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name}}
		agent.Annotations = map[string]string{bootstrapv1.ClaimAnnotation: assisted.Claim(machine)}
		agent.Spec.ClusterDeploymentName = &assisted.ClusterReference{Namespace: "ns", Name: "cp"}
		agent.Spec.Role = assisted.RoleMaster
		agent.Status.DebugInfo.State, agent.Status.Progress.CurrentStage = "error", "Writing image to disk"
		agent.Status.Conditions = []assisted.Condition{
			{Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationFailed},
		}
		v.Install.Agents = append(v.Install.Agents, agent)
	}
	return v
}

// condition makes a condition of the AgentClusterInstall.
func condition(v *view.View, conditionType hivev1.ClusterInstallConditionType, status corev1.ConditionStatus, reason, message string) {
	v.Install.AgentClusterInstall.Status.Conditions = append(v.Install.AgentClusterInstall.Status.Conditions, hivev1.ClusterInstallCondition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
	})
}

// TestRetryIsBlocked: each thing that keeps an attempt from beginning by itself, after the wait is over (DESIGN D35).
func TestRetryIsBlocked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*view.View)
		want   string
	}{
		"the cluster was initialized": {func(v *view.View) {
			v.ControlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
		}, "the cluster was installed"},
		"a cluster is recorded": {func(v *view.View) { v.Record = &view.Installed{} }, "the cluster was installed"},
		"the API answers":       {func(v *view.View) { v.Workload.Answered = true }, "the API of the cluster has answered"},
		"the API has answered an earlier manager": {func(v *view.View) {
			v.ControlPlane.Annotations[controlplanev1.InstallationFailedAnnotation] =
				plan.Failed{Attempt: "1", Time: failedAt, Answered: true}.String()
		}, "the API of the cluster has answered"},
		"the user holds it": {func(v *view.View) { v.ControlPlane.Spec.Install.HoldInstallation = new(true) }, "holdInstallation is true"},
		"somebody has cancelled it": {func(v *view.View) {
			condition(v, hiveext.ClusterStoppedCondition, corev1.ConditionTrue, hiveext.ClusterStoppedCanceledReason, "")
		}, "somebody has cancelled"},
		"the spec is refused": {func(v *view.View) {
			condition(v, hiveext.ClusterSpecSyncedCondition, corev1.ConditionFalse, hiveext.ClusterInputErrorReason, "no such release")
		}, "would again: no such release"},
		"checks of the cluster fail": {func(v *view.View) {
			condition(v, hiveext.ClusterValidatedCondition, corev1.ConditionFalse, hiveext.ClusterValidationsFailingReason, "no DNS")
		}, "would again: no DNS"},
		"a Machine is missing": {func(v *view.View) { delete(v.Machines.Owned, "cp-2") }, "2 of 3 control-plane Machines have a host"},
		"a Machine is being deleted": {func(v *view.View) {
			v.Machines.Owned["cp-1"].DeletionTimestamp = &metav1.Time{Time: failedAt}
		}, "2 of 3 control-plane Machines have a host"},
		"a host reports an error": {func(v *view.View) {
			v.Machines.Configs["cp-1"].Status.Conditions[0] = metav1.Condition{
				Type: bootstrapv1.HostHealthyCondition, Status: metav1.ConditionFalse, Message: "no power",
			}
		}, "2 of 3 control-plane Machines have a host without an error; Machine cp-1: no power"},
		"the number of the attempt is none": {func(v *view.View) {
			v.ControlPlane.Annotations[controlplanev1.InstallAttemptAnnotation] = "x"
			v.Install.AgentClusterInstall.Annotations = v.ControlPlane.Annotations
		}, `is "x", which is no number`},
	} {
		t.Run(name, func(t *testing.T) {
			expectBlocked(t, test.change, ContainSubstring(test.want))
		})
	}
}

// expectBlocked expects that a change keeps the next attempt from beginning by itself, and that no time changes that.
func expectBlocked(t *testing.T, change func(*view.View), why gomegatypes.GomegaMatcher) {
	t.Helper()
	g := NewWithT(t)
	v := failedView(1)
	g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{Now: true}))
	change(v)
	d := plan.DecideRetry(v)
	g.Expect(d.Blocked).To(why)
	g.Expect(d.Now).To(BeFalse())
	g.Expect(d.At).To(BeZero())
}

// TestRetryBeginsWithoutWorkers: hosts of workers that report an error are no reason to wait for a person. The next attempt begins without
// them.
func TestRetryBeginsWithoutWorkers(t *testing.T) {
	g := NewWithT(t)
	v := failedView(1)
	for _, name := range []string{"worker-0", "worker-1"} {
		v.Machines.Workers = append(v.Machines.Workers, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}})
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		config.Status.Conditions = []metav1.Condition{{
			Type: bootstrapv1.HostHealthyCondition, Status: metav1.ConditionFalse, Message: "no power",
		}}
		v.Machines.Configs[name] = config
	}
	g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{Now: true}))
}

// TestRetryIsNotDecided: whenever no attempt has failed, or the user wants none to begin by itself.
func TestRetryIsNotDecided(t *testing.T) {
	for name, change := range map[string]func(*view.View){
		"spec.install.retries is unset": func(v *view.View) { v.ControlPlane.Spec.Install.Retries = nil },
		"spec.install.retries is 0":     func(v *view.View) { v.ControlPlane.Spec.Install.Retries = new(int32(0)) },
		"the installation runs":         func(v *view.View) { v.Life = view.Installing },
		"the cluster runs":              func(v *view.View) { v.Life = view.Running },
		"the cluster is imported":       func(v *view.View) { v.Life = view.Imported },
		"the installation is being deleted": func(v *view.View) {
			v.Install.AgentClusterInstall.DeletionTimestamp = &metav1.Time{Time: failedAt}
		},
		"it is the one of an earlier attempt": func(v *view.View) { v.Install.AgentClusterInstall.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			v := failedView(3)
			change(v)
			NewWithT(t).Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{}))
		})
	}
}

// TestRetryWaits: the wait is counted from the recorded time, doubles, and ends with the last attempt.
func TestRetryWaits(t *testing.T) {
	for attempt, wait := range map[string]time.Duration{"1": 10 * time.Minute, "2": 20 * time.Minute, "3": 40 * time.Minute, "4": 0} {
		t.Run("after attempt "+attempt, func(t *testing.T) {
			g := NewWithT(t)
			v := failedView(3)
			numbered := map[string]string{controlplanev1.InstallAttemptAnnotation: attempt}
			v.ControlPlane.Annotations, v.Install.AgentClusterInstall.Annotations = numbered, numbered
			v.Now = failedAt
			d := plan.DecideRetry(v)
			if wait == 0 {
				g.Expect(d).To(Equal(plan.RetryDecision{Exhausted: true}))
				return
			}
			record := plan.Failed{Attempt: attempt, Time: failedAt}
			g.Expect(d).To(Equal(plan.RetryDecision{Record: record.String(), At: failedAt.Add(wait)}))
			v.ControlPlane.Annotations[controlplanev1.InstallationFailedAnnotation] = record.String()
			v.Now = failedAt.Add(wait - time.Second)
			g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{At: failedAt.Add(wait)}))
			v.Now = failedAt.Add(wait)
			g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{Now: true}))
		})
	}
	t.Run("a record that somebody broke, or that is of another attempt, is made anew", func(t *testing.T) {
		for _, broken := range []string{"", "{", plan.Failed{Attempt: "7", Time: failedAt}.String()} {
			v := failedView(1)
			v.ControlPlane.Annotations[controlplanev1.InstallationFailedAnnotation] = broken
			NewWithT(t).Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{
				Record: plan.Failed{Attempt: "1", Time: v.Now}.String(), At: v.Now.Add(10 * time.Minute),
			}))
		}
	})
}

// TestRetryWaitsForANewManager: one that has just begun to act has not heard yet whether the API answers.
func TestRetryWaitsForANewManager(t *testing.T) {
	g := NewWithT(t)
	v := failedView(1)
	v.Workload.SettledFrom = v.Now.Add(time.Minute)
	g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{At: v.Now.Add(time.Minute)}))
	v.Now = v.Workload.SettledFrom
	g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{Now: true}))
	v.Now, v.Workload.SettledFrom = failedAt, failedAt.Add(time.Minute)
	g.Expect(plan.DecideRetry(v)).To(Equal(plan.RetryDecision{At: failedAt.Add(10 * time.Minute)}))
}

// TestAnswerIsRecordedWithoutRetries: whoever allows attempts later must not have a cluster wiped that has answered.
func TestAnswerIsRecordedWithoutRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		retries   int32
		attempt   string
		exhausted bool
	}{"none is allowed": {0, "1", false}, "all were made": {1, "2", true}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := failedView(tt.retries)
			numbered := map[string]string{controlplanev1.InstallAttemptAnnotation: tt.attempt}
			v.ControlPlane.Annotations, v.Install.AgentClusterInstall.Annotations = numbered, numbered
			v.Workload.Answered = true
			d := plan.DecideRetry(v)
			g.Expect(d).To(Equal(plan.RetryDecision{
				Exhausted: tt.exhausted, Record: plan.Failed{Attempt: tt.attempt, Time: v.Now, Answered: true}.String(),
			}))
			v.ControlPlane.Annotations[controlplanev1.InstallationFailedAnnotation] = d.Record
			g.Expect(plan.DecideRetry(v).Record).To(BeEmpty())
			v.Workload.Answered, v.ControlPlane.Spec.Install.Retries = false, new(int32(3))
			g.Expect(plan.DecideRetry(v).Blocked).To(ContainSubstring("the API of the cluster has answered"))
		})
	}
}
