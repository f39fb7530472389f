// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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
	"github.com/capi-openshift/agent-providers/internal/metal3"
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

// minSurvivors is the number of members of which etcd survives the loss of one, and of no other while that is replaced.
const minSurvivors = 3

// setMachineAggregates sums up the conditions Ready and UpToDate of the Machines.
func setMachineAggregates(cp *controlplanev1.OpenshiftAssistedControlPlane, machines collections.Machines) {
	ready := collections.New()
	for _, m := range machines {
		ready.Insert(joining(cp, m))
	}
	bounded.SetCondition(cp, machinesReady.condition(ready))
	// Machines get the condition in the pass after their creation; until then they would make the aggregate flicker.
	checked := machines.Filter(func(m *clusterv1.Machine) bool { return conditions.Has(m, clusterv1.MachineUpToDateCondition) })
	bounded.SetCondition(cp, machinesUpToDate.condition(checked))
}

// joining is a Machine as the aggregate counts it. How far the host of one that is no Node of an initialized cluster yet is, changes many
// times, and its own conditions say it: here it is just not ready.
func joining(cp *controlplanev1.OpenshiftAssistedControlPlane, m *clusterv1.Machine) *clusterv1.Machine {
	initialized := ptr.Deref(cp.Status.Initialization.ControlPlaneInitialized, false)
	if initialized && m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero() || conditions.IsTrue(m, clusterv1.MachineReadyCondition) {
		return m
	}
	counted := m.DeepCopy()
	bounded.SetCondition(counted, metav1.Condition{
		Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineNotReadyReason,
		Message: "The host has not joined yet",
	})
	return counted
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

// rollingOutCondition says which Machines are not up to date, and what is done about it.
func rollingOutCondition(v *view.View, d decision, machines collections.Machines) metav1.Condition {
	outdated := machines.Filter(func(m *clusterv1.Machine) bool { return conditions.IsFalse(m, clusterv1.MachineUpToDateCondition) })
	if len(outdated) == 0 {
		return metav1.Condition{
			Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotRollingOutReason,
		}
	}
	message := fmt.Sprintf("%d of %d Machines are not up to date", len(outdated), len(machines))
	if len(d.rollout.Due) > 0 {
		message += fmt.Sprintf("\n* Replaced one after the other: %s", strings.Join(d.rollout.Due, ", "))
		blockers := d.rollout.Blockers
		if d.rollout.Surge {
			blockers = append(slices.Clone(blockers), d.machines.Blockers...)
		}
		strategy := v.ControlPlane.Spec.Rollout.Strategy
		if strategy.Type == controlplanev1.RollingUpdateRollout && ptr.Deref(strategy.RollingUpdate.MaxSurge, 0) == 0 &&
			ptr.Deref(v.ControlPlane.Spec.Replicas, 0) == minSurvivors {
			message += " (maxSurge is 0: while one is replaced, etcd survives the loss of no other host)"
		}
		for _, blocker := range blockers {
			message += "\n* The next has to wait: " + blocker
		}
	}
	if len(d.rollout.Waiting) > 0 {
		message += fmt.Sprintf("\n* Replaced when you delete them or annotate them with %s, and not by themselves "+
			"(spec.rollout.strategy.type is OnDelete): %s", clusterv1.DeleteMachineAnnotation, strings.Join(d.rollout.Waiting, ", "))
	}
	updating := outdated.Filter(func(m *clusterv1.Machine) bool { return plan.Updating(v, m) }).Names()
	if len(updating) > 0 {
		slices.Sort(updating)
		message += fmt.Sprintf("\n* Upgraded in place, with the cluster: %s", strings.Join(updating, ", "))
	}
	if len(d.rollout.Fixed) > 0 {
		message += fmt.Sprintf("\n* Not replaced: %s: %s", strings.Join(d.rollout.Fixed, ", "), d.rollout.Unfit)
	}
	return metav1.Condition{
		Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.RollingOutReason, Message: message,
	}
}

// scalingUpCondition says what stands in the way of the Machines that are missing.
func scalingUpCondition(v *view.View, d decision, o *outcomes) metav1.Condition {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	condition := metav1.Condition{
		Type: controlplanev1.ScalingUpCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotScalingUpReason,
	}
	// Those that wait for their turn to leave etcd are replaced.
	machines := len(o.owned(v)) - len(d.leaving.Voting)
	if machines >= replicas || !v.ControlPlane.DeletionTimestamp.IsZero() {
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ScalingUpReason
	condition.Message = fmt.Sprintf("Scaling up from %d to %d replicas", machines, replicas)
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

// scalingDownCondition says which Machines are too many, and what those wait for that are deleted and do not leave etcd yet.
func scalingDownCondition(v *view.View, d decision, o *outcomes) metav1.Condition {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	if !v.ControlPlane.DeletionTimestamp.IsZero() {
		replicas = 0
	}
	condition := metav1.Condition{
		Type: controlplanev1.ScalingDownCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotScalingDownReason,
	}
	var lines []string
	if len(v.Machines.Owned)-len(d.leaving.Voting) > replicas {
		line := fmt.Sprintf("Scaling down from %d to %d replicas", len(v.Machines.Owned)-len(d.leaving.Voting), replicas)
		if blockers := d.machines.SurplusBlockers; len(blockers) > 0 {
			line += " is blocked because:\n* " + strings.Join(blockers, "\n* ")
		}
		lines = append(lines, line)
	}
	for _, machine := range slices.Sorted(maps.Keys(d.leaving.Waiting)) {
		lines = append(lines, fmt.Sprintf("Machine %s is deleted, and its host is not freed yet: %s", machine, d.leaving.Waiting[machine]))
	}
	lines = append(lines, unfreed(v, d)...)
	if problem := o.notLeft(); problem != "" {
		lines = append(lines, problem)
	}
	if len(lines) > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ScalingDownReason
		condition.Message = strings.Join(lines, "\n")
	}
	return condition
}

// unfreed has a line for each Machine that is deleted and whose BareMetalHost reports an error. Of a control plane that is deleted itself,
// the condition Deleting has them.
func unfreed(v *view.View, d decision) []string {
	var lines []string
	for _, m := range v.Machines.Owned.SortedByCreationTimestamp() {
		problem := plan.HostError(v.Machines.Configs[m.Name])
		if problem == "" || m.DeletionTimestamp.IsZero() || d.leaving.Waiting[m.Name] != "" || !v.ControlPlane.DeletionTimestamp.IsZero() {
			continue
		}
		lines = append(lines, fmt.Sprintf("Machine %s is deleted, and its host is not freed yet: %s", m.Name, problem))
	}
	return lines
}

// remediatingCondition names the Machine that is being replaced because it is not healthy, and the unhealthy ones that stay, with the
// reason.
func remediatingCondition(v *view.View, d decision, machines collections.Machines) metav1.Condition {
	condition := metav1.Condition{
		Type: controlplanev1.RemediatingCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotRemediatingReason,
	}
	var lines []string
	current := view.RemediationInProgress(v.ControlPlane)
	if (current != nil && !d.remedy.Done) || d.remedy.Record != nil {
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.RemediatingReason
		machine := cmp.Or(d.remedy.Record, current).Machine
		line := fmt.Sprintf("* Machine %s is being replaced", machine)
		if infra := v.Machines.Infra[machine]; infra != nil {
			if host, known := metal3.HostKey(infra); known {
				line += fmt.Sprintf(". Metal3 may choose BareMetalHost %s again, unless it has annotation %s", host.Name, metal3.UnhealthyAnnotation)
			}
		}
		lines = append(lines, line)
	}
	unhealthy := machines.Filter(func(m *clusterv1.Machine) bool {
		return conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition)
	})
	for _, m := range unhealthy.SortedByCreationTimestamp() {
		line := fmt.Sprintf("* Machine %s is not healthy: %s", m.Name, conditions.GetMessage(m, clusterv1.MachineHealthCheckSucceededCondition))
		if verdict, told := d.remedy.Verdicts[m.Name]; told && verdict.Reason != controlplanev1.MachineRemediationDeletingReason {
			line += ". It is not replaced now: " + verdict.Message
		}
		lines = append(lines, line)
	}
	condition.Message = strings.Join(lines, "\n")
	return condition
}
