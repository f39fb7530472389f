// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// machineWith is a Machine with conditions of these statuses.
func machineWith(name string, statuses map[string]metav1.ConditionStatus) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for conditionType, status := range statuses {
		conditions.Set(m, metav1.Condition{Type: conditionType, Status: status, Reason: "Test", Message: "of " + name})
	}
	return m
}

func testProgressConditions(t *testing.T) {
	outdated := map[string]metav1.ConditionStatus{clusterv1.MachineUpToDateCondition: metav1.ConditionFalse}
	current := map[string]metav1.ConditionStatus{clusterv1.MachineUpToDateCondition: metav1.ConditionTrue}
	of := func(replicas int32, machines ...*clusterv1.Machine) *view.View {
		v := viewOf(false)
		v.ControlPlane.Spec.Replicas, v.Machines.Owned = &replicas, collections.FromMachines(machines...)
		return v
	}
	deleting := of(1, machineWith("a", current))
	deleting.ControlPlane.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	tests := []struct {
		name                         string
		view                         *view.View
		rolling, scalingUp, scalDown bool
	}{
		{"nothing happens", of(1, machineWith("a", current)), false, false, false},
		{"a Machine is missing", of(3, machineWith("a", current)), false, true, false},
		{"a Machine is too many", of(1, machineWith("a", current), machineWith("b", current)), false, false, true},
		{"a Machine is out of date", of(2, machineWith("a", current), machineWith("b", outdated)), true, false, false},
		{"nobody knows yet whether it is", of(1, machineWith("a", nil)), false, false, false},
		{"the control plane is deleted", deleting, false, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			for condition, want := range map[*metav1.Condition]bool{
				new(rollingOutCondition(tt.view, decision{}, tt.view.Machines.Owned)): tt.rolling,
				new(scalingUpCondition(tt.view, decision{}, &outcomes{})):             tt.scalingUp,
				new(scalingDownCondition(tt.view, decision{}, &outcomes{})):           tt.scalDown,
			} {
				g.Expect(condition.Status).To(Equal(conditions.BoolToStatus(want)), condition.Type)
			}
		})
	}
}

// testUnfreedHosts: a BareMetalHost that reports an error keeps a Machine, and Metal3 and Cluster API do not say so.
func testUnfreedHosts(t *testing.T) {
	const text = "BareMetalHost host-0 in state deprovisioning reports provisioning error: no power"
	for name, test := range map[string]struct {
		machineDeleted, cpDeleted, fails bool
		scalingDown, deleting            string
	}{
		"the Machine lives":       {fails: true},
		"its host is being freed": {machineDeleted: true},
		"its host is not freed": {machineDeleted: true, fails: true,
			scalingDown: "Machine a is deleted, and its host is not freed yet: " + text},
		"nor that of a control plane that is deleted": {machineDeleted: true, cpDeleted: true, fails: true,
			scalingDown: "Scaling down from 1 to 0 replicas",
			deleting:    "Waiting for the deletion of Machines: a\n* Machine a: " + text},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v, replicas, deleted := viewOf(false), int32(1), &metav1.Time{Time: time.Now()}
			m, config := machineWith("a", nil), &bootstrapv1.OpenshiftAssistedConfig{}
			if test.machineDeleted {
				m.DeletionTimestamp = deleted
			}
			if test.cpDeleted {
				v.ControlPlane.DeletionTimestamp = deleted
			}
			if test.fails {
				conditions.Set(config, metav1.Condition{
					Type: bootstrapv1.HostHealthyCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.HostErrorReason, Message: text,
				})
			}
			v.ControlPlane.Spec.Replicas, v.Machines.Owned = &replicas, collections.FromMachines(m)
			v.Machines.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{"a": config}
			g.Expect(scalingDownCondition(v, decision{}, &outcomes{}).Message).To(Equal(test.scalingDown))
			if test.cpDeleted {
				_, _, message := plan.LeftoversOf(v).Next()
				g.Expect(message).To(Equal(test.deleting))
			}
		})
	}
}

func testOperatorConditions(t *testing.T) {
	etcd := operatorSummaries[0]
	with := func(change func(*view.View)) *view.View {
		v := viewOf(true, true)
		v.Workload.Operators = healthyOperators()
		change(v)
		return v
	}
	says := func(available, degraded workload.OperatorCondition) *view.View {
		return with(func(v *view.View) {
			v.Workload.Operators[workload.OperatorEtcd] = workload.Operator{Available: available, Degraded: degraded}
		})
	}
	yes, no := workload.OperatorCondition{Status: "True"}, workload.OperatorCondition{Status: "False"}
	tests := []struct {
		name            string
		view            *view.View
		status          metav1.ConditionStatus
		reason, message string
	}{
		{"well", says(yes, no), metav1.ConditionTrue, controlplanev1.EtcdClusterHealthyReason, ""},
		{"not available", says(workload.OperatorCondition{Status: "False", Message: "no quorum"}, no), metav1.ConditionFalse,
			controlplanev1.EtcdClusterNotHealthyReason, "* ClusterOperator etcd is not available: no quorum"},
		{"one member of three is lost", says(yes, workload.OperatorCondition{Status: "True", Message: "2 of 3"}), metav1.ConditionFalse,
			controlplanev1.EtcdClusterNotHealthyReason, "* ClusterOperator etcd is degraded: 2 of 3"},
		{"not told", says(workload.OperatorCondition{Status: "Unknown", Message: "not reported"}, no), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterHealthUnknownReason, "* ClusterOperator etcd does not say whether it is available: not reported"},
		{"half told", says(yes, workload.OperatorCondition{Status: "Unknown"}), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterHealthUnknownReason, "* ClusterOperator etcd does not say whether it is degraded: "},
		{"no such operator", with(func(v *view.View) { delete(v.Workload.Operators, workload.OperatorEtcd) }), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterHealthUnknownReason, "* ClusterOperator etcd does not exist"},
		{"cannot be read", with(func(v *view.View) { v.Workload.Operators, v.Workload.Problem = nil, errors.New("x") }), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterInspectionFailedReason, "The ClusterOperators cannot be read: x"},
		{"not initialized", viewOf(false), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterInspectionFailedReason, "Waiting for the control plane to be initialized"},
		{"not connected yet", viewOf(true), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterConnectionDownReason, "There is no connection to the cluster yet"},
		{"not connected for long", with(func(v *view.View) {
			v.Workload.Down, v.Workload.LastAnswer = true, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		}), metav1.ConditionUnknown, controlplanev1.EtcdClusterConnectionDownReason, "Last successful probe at 2026-01-02T03:04:05Z"},
		{"never connected", with(func(v *view.View) { v.Workload.Down = true }), metav1.ConditionUnknown,
			controlplanev1.EtcdClusterConnectionDownReason, "The API of the cluster has not answered since the manager started"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(etcd.condition(tt.view)).To(HaveValue(Equal(metav1.Condition{
				Type: controlplanev1.EtcdClusterHealthyCondition, Status: tt.status, Reason: tt.reason, Message: tt.message,
			})))
		})
	}
	t.Run("a lost connection leaves what was known", func(t *testing.T) {
		v := viewOf(true)
		conditions.Set(
			v.ControlPlane, metav1.Condition{Type: controlplanev1.EtcdClusterHealthyCondition, Status: metav1.ConditionTrue, Reason: "Healthy"},
		)
		NewWithT(t).Expect(etcd.condition(v)).To(BeNil())
	})
	t.Run("several components are listed", func(t *testing.T) {
		v := with(func(v *view.View) {
			delete(v.Workload.Operators, workload.OperatorScheduler)
			v.Workload.Operators[workload.OperatorAPIServer] = workload.Operator{
				Available: yes, Degraded: workload.OperatorCondition{Status: "True", Message: "one is old"},
			}
		})
		NewWithT(t).Expect(operatorSummaries[1].condition(v)).To(HaveValue(Equal(metav1.Condition{
			Type: controlplanev1.ControlPlaneComponentsHealthyCondition, Status: metav1.ConditionFalse,
			Reason:  controlplanev1.ControlPlaneComponentsNotHealthyReason,
			Message: "* ClusterOperator kube-apiserver is degraded: one is old\n* ClusterOperator kube-scheduler does not exist",
		})))
	})
}

func testRemediating(t *testing.T) {
	g := NewWithT(t)
	well := machineWith("a", map[string]metav1.ConditionStatus{clusterv1.MachineHealthCheckSucceededCondition: metav1.ConditionTrue})
	ill := machineWith("b", map[string]metav1.ConditionStatus{clusterv1.MachineHealthCheckSucceededCondition: metav1.ConditionFalse})
	v := &view.View{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}
	g.Expect(remediatingCondition(v, decision{}, collections.FromMachines(well))).To(Equal(metav1.Condition{
		Type: controlplanev1.RemediatingCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotRemediatingReason,
	}))
	both := collections.FromMachines(well, ill)
	g.Expect(remediatingCondition(v, decision{}, both)).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Message", And(HavePrefix("* Machine b is not healthy"), HaveSuffix("of b")))))

	verdicts := map[string]plan.Verdict{"b": {Reason: controlplanev1.MachineRemediationDeferredReason, Message: "Something else comes first"}}
	g.Expect(remediatingCondition(v, decision{remedy: plan.RemediationDecision{Verdicts: verdicts}}, both)).To(And(
		HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", HaveSuffix("of b. It is not replaced now: Something else comes first"))))

	v.ControlPlane.Annotations = map[string]string{
		controlplanev1.RemediationInProgressAnnotation: view.Remediation{Machine: "c"}.String(),
	}
	g.Expect(remediatingCondition(v, decision{}, both)).To(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("Reason", controlplanev1.RemediatingReason),
		HaveField("Message", HavePrefix("* Machine c is being replaced\n* Machine b is not healthy"))))
}

func testCounters(t *testing.T) {
	g := NewWithT(t)
	yes := func(conditionTypes ...string) map[string]metav1.ConditionStatus {
		statuses := map[string]metav1.ConditionStatus{}
		for _, conditionType := range conditionTypes {
			statuses[conditionType] = metav1.ConditionTrue
		}
		return statuses
	}
	deleted := machineWith("d", nil)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	setCounters(cp, "c", collections.FromMachines(
		machineWith("a", yes(clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineUpToDateCondition)),
		machineWith("b", yes(clusterv1.MachineReadyCondition, clusterv1.MachineUpToDateCondition)),
		machineWith("c", yes(clusterv1.MachineUpToDateCondition)), deleted))
	g.Expect(cp.Status.Replicas).To(HaveValue(BeEquivalentTo(4)))
	g.Expect(cp.Status.ReadyReplicas).To(HaveValue(BeEquivalentTo(2)))
	g.Expect(cp.Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(cp.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(cp.Status.Selector).To(Equal("cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/control-plane"))
}

func testStatusOfAFailedPass(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.refuse = func(o client.Object) error {
		if _, machine := o.(*clusterv1.Machine); machine {
			return errors.New("no room")
		}
		return nil
	}
	for range 3 {
		_ = w.try()
	}
	g.Expect(w.try()).To(MatchError(ContainSubstring("no room")))
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(And(
		HavePrefix("Scaling up from 0 to 3 replicas is blocked because:\n* create Machine ns/cp-0"), HaveSuffix("no room")))
}
