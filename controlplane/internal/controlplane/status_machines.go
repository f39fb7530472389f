// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// machineAggregate is a condition that aggregates one of the Machines, with its reasons (CONTRACT CP-82).
type machineAggregate struct {
	source, target string

	allTrue, anyFalse, unknown, noReplicas, internalError string
}

var (
	machinesReady = machineAggregate{
		source: clusterv1.MachineReadyCondition, target: controlplanev1.MachinesReadyCondition,
		allTrue: controlplanev1.MachinesReadyReason, anyFalse: controlplanev1.MachinesNotReadyReason,
		unknown: controlplanev1.MachinesReadyUnknownReason, noReplicas: controlplanev1.MachinesReadyNoReplicasReason,
		internalError: controlplanev1.MachinesReadyInternalErrorReason,
	}
	machinesUpToDate = machineAggregate{
		source: clusterv1.MachineUpToDateCondition, target: controlplanev1.MachinesUpToDateCondition,
		allTrue: controlplanev1.MachinesUpToDateReason, anyFalse: controlplanev1.MachinesNotUpToDateReason,
		unknown: controlplanev1.MachinesUpToDateUnknownReason, noReplicas: controlplanev1.MachinesUpToDateNoReplicasReason,
		internalError: controlplanev1.MachinesUpToDateInternalErrorReason,
	}
)

// setMachineAggregates sums up the conditions Ready and UpToDate of the Machines.
func setMachineAggregates(cp *controlplanev1.OpenshiftAssistedControlPlane, machines collections.Machines) {
	bounded.SetCondition(cp, machinesReady.condition(machines))
	// Machines get the condition in the pass after their creation; until then they would make the aggregate flicker.
	checked := machines.Filter(func(m *clusterv1.Machine) bool { return conditions.Has(m, clusterv1.MachineUpToDateCondition) })
	bounded.SetCondition(cp, machinesUpToDate.condition(checked))
}

func (a machineAggregate) condition(machines collections.Machines) metav1.Condition {
	if len(machines) == 0 {
		return metav1.Condition{Type: a.target, Status: metav1.ConditionTrue, Reason: a.noReplicas}
	}
	strategy := conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(
		conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(a.anyFalse, a.unknown, a.allTrue)))}
	condition, err := conditions.NewAggregateCondition(
		machines.SortedByCreationTimestamp(), a.source, conditions.TargetConditionType(a.target), strategy,
	)
	if err != nil {
		return metav1.Condition{Type: a.target, Status: metav1.ConditionUnknown, Reason: a.internalError, Message: err.Error()}
	}
	return *condition
}

func rollingOutCondition(machines collections.Machines) metav1.Condition {
	outdated := machines.Filter(func(m *clusterv1.Machine) bool { return conditions.IsFalse(m, clusterv1.MachineUpToDateCondition) })
	if len(outdated) == 0 {
		return metav1.Condition{
			Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotRollingOutReason,
		}
	}
	return metav1.Condition{
		Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.RollingOutReason,
		Message: fmt.Sprintf("%d Machines are not up to date; they are not replaced: this provider does not roll out changes yet", len(outdated)),
	}
}

// scalingUpCondition says what stands in the way of the Machines that are missing.
func scalingUpCondition(v *view.View, d decision, o *outcomes) metav1.Condition {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	condition := metav1.Condition{
		Type: controlplanev1.ScalingUpCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotScalingUpReason,
	}
	if len(v.Machines.Owned) >= replicas || !v.ControlPlane.DeletionTimestamp.IsZero() {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ScalingUpReason
	condition.Message = fmt.Sprintf("Scaling up from %d to %d replicas", len(v.Machines.Owned), replicas)
	blockers := d.machines.Blockers
	if _, message := obstacle(v, d, o); message != "" {
		blockers = append(blockers, message)
	}
	if problem := o.notCreated(); problem != "" {
		blockers = append(blockers, problem)
	}
	if len(blockers) > 0 {
		condition.Message += " is blocked because:\n* " + strings.Join(blockers, "\n* ")
	}
	return condition
}

func scalingDownCondition(v *view.View) metav1.Condition {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	if !v.ControlPlane.DeletionTimestamp.IsZero() {
		replicas = 0
	}
	condition := metav1.Condition{
		Type: controlplanev1.ScalingDownCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotScalingDownReason,
	}
	if len(v.Machines.Owned) > replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ScalingDownReason
		condition.Message = fmt.Sprintf("Scaling down from %d to %d replicas", len(v.Machines.Owned), replicas)
		if replicas > 0 && !plan.MayRemoveMachines(v) {
			condition.Message += " is not supported once the installation has begun: delete nothing by hand, set spec.replicas back"
		}
	}
	return condition
}

// remediatingCondition names the Machines that a MachineHealthCheck found unhealthy: without it nobody would say that they stay.
func remediatingCondition(machines collections.Machines) metav1.Condition {
	condition := metav1.Condition{
		Type: controlplanev1.RemediatingCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotRemediatingReason,
	}
	unhealthy := machines.Filter(func(m *clusterv1.Machine) bool {
		return conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition)
	})
	lines := make([]string, 0, len(unhealthy))
	for _, m := range unhealthy.SortedByCreationTimestamp() {
		lines = append(lines, fmt.Sprintf("* Machine %s is not healthy and not replaced, which this provider does not do yet: %s", m.Name,
			conditions.GetMessage(m, clusterv1.MachineHealthCheckSucceededCondition)))
	}
	condition.Message = strings.Join(lines, "\n")
	return condition
}
