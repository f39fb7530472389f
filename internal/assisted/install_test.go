// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func install(state string, conditions ...hivev1.ClusterInstallCondition) *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{}
	aci.Status.DebugInfo.State = state
	aci.Status.Conditions = conditions
	aci.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: 3, WorkerAgents: 2}
	return aci
}

func condition(
	conditionType hivev1.ClusterInstallConditionType, status corev1.ConditionStatus, reason string,
) hivev1.ClusterInstallCondition {
	return hivev1.ClusterInstallCondition{Type: conditionType, Status: status, Reason: reason}
}

// TestPhaseAndGate goes through the states of ASSISTED 1.3: what each means, and whom it lets in.
func TestPhaseAndGate(t *testing.T) {
	notStarted := condition(hiveext.ClusterCompletedCondition, corev1.ConditionFalse, hiveext.ClusterInstallationNotStartedReason)
	inProgress := condition(hiveext.ClusterCompletedCondition, corev1.ConditionFalse, hiveext.ClusterInstallationInProgressReason)
	completed := condition(hiveext.ClusterCompletedCondition, corev1.ConditionTrue, hiveext.ClusterInstalledReason)
	stopped := condition(hiveext.ClusterStoppedCondition, corev1.ConditionTrue, hiveext.ClusterStoppedCanceledReason)
	failed := condition(hiveext.ClusterFailedCondition, corev1.ConditionTrue, hiveext.ClusterFailedReason)
	unknown := condition(hiveext.ClusterCompletedCondition, corev1.ConditionUnknown, hiveext.ClusterUnknownStatusReason)
	tests := []struct {
		name           string
		aci            *hiveext.AgentClusterInstall
		change         func(*hiveext.AgentClusterInstall)
		phase          Phase
		master, worker Gate
	}{
		{name: "nothing said yet", aci: install(""), phase: PhaseUnknown, master: GateClosed, worker: GateClosed},
		{name: "insufficient", aci: install(ClusterStateInsufficient, notStarted), phase: PhaseWaiting, master: GateDayOne, worker: GateDayOne},
		{name: "pending-for-input", aci: install(ClusterStatePending, notStarted), phase: PhaseWaiting, master: GateDayOne, worker: GateDayOne},
		{
			name: "ready and on hold",
			aci: install(
				ClusterStateReady, condition(hiveext.ClusterCompletedCondition, corev1.ConditionFalse, hiveext.ClusterInstallationOnHoldReason),
			),
			phase:  PhaseWaiting,
			master: GateDayOne,
			worker: GateDayOne,
		},
		{
			name: "no workers required", aci: install(ClusterStateReady, notStarted),
			change: func(a *hiveext.AgentClusterInstall) { a.Spec.ProvisionRequirements.WorkerAgents = 0 }, phase: PhaseWaiting, master: GateDayOne,
			worker: GateClosed,
		},
		{name: "day 1 closed", aci: install(ClusterStateReady, notStarted), change: func(a *hiveext.AgentClusterInstall) {
			a.Annotations = map[string]string{DayOneAgentsAnnotation: "a,b"}
		}, phase: PhaseWaiting, master: GateClosed, worker: GateClosed},
		{name: "being deleted", aci: install(ClusterStateReady, notStarted), change: func(a *hiveext.AgentClusterInstall) {
			a.DeletionTimestamp = ptr.To(metav1.Now())
		}, phase: PhaseWaiting, master: GateClosed, worker: GateClosed},
		{name: "preparing", aci: install(ClusterStatePreparing, inProgress), phase: PhasePreparing, master: GateClosed, worker: GateClosed},
		{name: "installing", aci: install(ClusterStateInstalling, inProgress), phase: PhaseInstalling, master: GateClosed, worker: GateClosed},
		{
			name: "a host waits for somebody", aci: install(ClusterStateInstallingPending, inProgress), phase: PhaseInstalling,
			master: GateClosed, worker: GateClosed,
		},
		{name: "finalizing", aci: install(ClusterStateFinalizing, inProgress), phase: PhaseFinalizing, master: GateClosed, worker: GateClosed},
		{
			name: "adding-hosts",
			aci: install(
				ClusterStateAddingHosts, completed,
				condition(hiveext.ClusterStoppedCondition, corev1.ConditionTrue, hiveext.ClusterStoppedCompletedReason),
			),
			phase:  PhaseCompleted,
			master: GateDayTwo,
			worker: GateDayTwo,
		},
		{
			name: "error",
			aci: install(
				"error", condition(hiveext.ClusterCompletedCondition, corev1.ConditionFalse, hiveext.ClusterInstallationFailedReason), failed, stopped,
			),
			phase:  PhaseFailed,
			master: GateClosed,
			worker: GateClosed,
		},
		{name: "cancelled", aci: install("cancelled", unknown, stopped), phase: PhaseFailed, master: GateClosed, worker: GateClosed},
		{name: "not recognised", aci: install("resetting", unknown), phase: PhaseUnknown, master: GateClosed, worker: GateClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			if tt.change != nil {
				tt.change(tt.aci)
			}
			g.Expect(PhaseOf(tt.aci)).To(Equal(tt.phase))
			g.Expect(GateOf(tt.aci, RoleMaster)).To(Equal(tt.master))
			g.Expect(GateOf(tt.aci, RoleWorker)).To(Equal(tt.worker))
		})
	}
	NewWithT(t).Expect(GateOf(nil, RoleMaster)).To(Equal(GateClosed))
}

// TestGateOfArbiters: only clusters of two nodes take one, and only in their first installation.
func TestGateOfArbiters(t *testing.T) {
	g := NewWithT(t)
	notStarted := condition(hiveext.ClusterCompletedCondition, corev1.ConditionFalse, hiveext.ClusterInstallationNotStartedReason)
	aci := install(ClusterStateReady, notStarted)
	g.Expect(GateOf(aci, RoleArbiter)).To(Equal(GateClosed))
	aci.Annotations = map[string]string{TwoNodeAnnotation: TwoNodeFencing}
	g.Expect(GateOf(aci, RoleArbiter)).To(Equal(GateClosed))
	g.Expect(NeedsFencing(aci)).To(BeTrue())
	aci.Annotations[TwoNodeAnnotation] = TwoNodeArbiter
	g.Expect(GateOf(aci, RoleArbiter)).To(Equal(GateDayOne))
	g.Expect(NeedsFencing(aci)).To(BeFalse())
	aci = install(ClusterStateAddingHosts, condition(hiveext.ClusterCompletedCondition, corev1.ConditionTrue, hiveext.ClusterInstalledReason))
	aci.Annotations = map[string]string{TwoNodeAnnotation: TwoNodeArbiter}
	g.Expect(GateOf(aci, RoleArbiter)).To(Equal(GateClosed))
	g.Expect(GateOf(aci, RoleWorker)).To(Equal(GateDayTwo))
}

func TestHostRegistrationTimeout(t *testing.T) {
	g := NewWithT(t)
	aci := install(ClusterStateReady)
	g.Expect(HostRegistrationTimeout(aci)).To(Equal(DefaultHostRegistrationTimeout))
	for value, want := range map[string]time.Duration{
		"0": 0, "600": 10 * time.Minute, "": DefaultHostRegistrationTimeout, "-1": DefaultHostRegistrationTimeout,
		"x": DefaultHostRegistrationTimeout, "99999999999": DefaultHostRegistrationTimeout,
	} {
		aci.Annotations = map[string]string{HostRegistrationTimeoutAnnotation: value}
		g.Expect(HostRegistrationTimeout(aci)).To(Equal(want), value)
	}
}

func TestDayOneAgents(t *testing.T) {
	g := NewWithT(t)
	aci := install(ClusterStateReady)
	names, closed := DayOneAgents(aci)
	g.Expect(names).To(BeEmpty())
	g.Expect(closed).To(BeFalse())
	aci.Annotations = map[string]string{DayOneAgentsAnnotation: FormatDayOneAgents([]string{"b", "a"})}
	names, closed = DayOneAgents(aci)
	g.Expect(names).To(Equal([]string{"a", "b"}))
	g.Expect(closed).To(BeTrue())
}

// TestReadyToInstall pins ASSISTED 8.8 rule 4: what an Agent shows besides RequirementsMet before it counts.
func TestReadyToInstall(t *testing.T) {
	ready := func() *Agent {
		a := &Agent{}
		a.Spec.Approved = true
		a.Status.DebugInfo.State = AgentStateKnown
		a.Status.Conditions = []Condition{
			{Type: ConditionBound, Status: corev1.ConditionTrue},
			{Type: ConditionSpecSynced, Status: corev1.ConditionTrue},
			{Type: ConditionRequirementsMet, Status: corev1.ConditionTrue, Reason: ReasonAgentIsReady},
		}
		return a
	}
	tests := map[string]struct {
		change func(*Agent)
		want   bool
	}{
		"bound, synced, approved and known":     {func(*Agent) {}, true},
		"unbound and approved from another day": {func(a *Agent) { a.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"discovering with stale validations":    {func(a *Agent) { a.Status.DebugInfo.State = "discovering" }, false},
		"spec not taken over":                   {func(a *Agent) { a.Status.Conditions[1].Status = corev1.ConditionFalse }, false},
		"installing already":                    {func(a *Agent) { a.Status.Conditions[2].Reason = "AgentAlreadyInstalling" }, false},
		"not approved":                          {func(a *Agent) { a.Spec.Approved = false }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := ready()
			tt.change(a)
			NewWithT(t).Expect(a.ReadyToInstall()).To(Equal(tt.want))
		})
	}
}
