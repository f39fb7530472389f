// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

// ownedConditions are the conditions that nobody else writes.
var ownedConditions = []string{
	controlplanev1.AvailableCondition,
	controlplanev1.InitializedCondition,
	controlplanev1.InstalledCondition,
	controlplanev1.KubeconfigAvailableCondition,
	controlplanev1.VersionsMatchCondition,
	controlplanev1.MachinesReadyCondition,
	controlplanev1.MachinesUpToDateCondition,
	controlplanev1.RollingOutCondition,
	controlplanev1.ScalingUpCondition,
	controlplanev1.ScalingDownCondition,
	controlplanev1.DeletingCondition,
	clusterv1.PausedCondition,
}

// updateStatus computes conditions and counters from the facts of the pass, in memory.
func (r *Reconciler) updateStatus(s *scope, d decision) {
	cp := s.controlPlane
	wasFailed := conditions.GetReason(cp, controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
	if d.initialize {
		cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		r.event(s, corev1.EventTypeNormal, controlplanev1.EventInitialized, "Initialize", "The cluster is installed and its API answers")
	}
	setCounters(cp, s.clusterName, s.machines)
	conditions.Set(cp, deletingCondition(d))
	conditions.Set(cp, initializedCondition(s))
	setMachineAggregates(cp, s.machines)
	conditions.Set(cp, rollingOutCondition(s.machines))
	conditions.Set(cp, scalingUpCondition(s))
	conditions.Set(cp, scalingDownCondition(s))
	if d.deletion == "" {
		// A cluster that goes away is not installed any further; what was known stays.
		setInstallStatus(s, d)
		conditions.Set(cp, kubeconfigCondition(s, d))
		conditions.Set(cp, versionsMatchCondition(s))
		if condition := availableCondition(s); condition != nil {
			conditions.Set(cp, *condition)
		}
	}
	if c := conditions.Get(cp, controlplanev1.InstalledCondition); c != nil && c.Reason == controlplanev1.InstallationFailedReason && !wasFailed {
		r.event(s, corev1.EventTypeWarning, controlplanev1.EventInstallationFailed, "Install", "%s", c.Message)
	}
}

// setCounters counts Machines by their conditions (CONTRACT CP-83) and versions (CP-10).
func setCounters(cp *controlplanev1.OpenshiftAssistedControlPlane, clusterName string, machines collections.Machines) {
	count := func(conditionType string) *int32 {
		n := int32(0)
		for _, m := range machines {
			if conditions.IsTrue(m, conditionType) {
				n++
			}
		}
		return &n
	}
	replicas := int32(len(machines))
	cp.Status.Replicas = &replicas
	cp.Status.ReadyReplicas = count(clusterv1.MachineReadyCondition)
	cp.Status.AvailableReplicas = count(clusterv1.MachineAvailableCondition)
	cp.Status.UpToDateReplicas = count(clusterv1.MachineUpToDateCondition)
	if versions := plan.StatusVersions(machines.UnsortedList()); len(versions) > 0 {
		cp.Status.Versions = versions
	} else {
		cp.Status.Versions = nil
	}
	if clusterName != "" {
		cp.Status.Selector = collections.ControlPlaneSelectorForCluster(clusterName).String()
	}
}

func deletingCondition(d decision) metav1.Condition {
	if d.deletion == "" {
		return metav1.Condition{Type: controlplanev1.DeletingCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotDeletingReason}
	}
	return metav1.Condition{
		Type: controlplanev1.DeletingCondition, Status: metav1.ConditionTrue, Reason: d.deletionReason, Message: d.deletionMessage,
	}
}

func initializedCondition(s *scope) metav1.Condition {
	if s.initialized() {
		return metav1.Condition{Type: controlplanev1.InitializedCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.InitializedReason}
	}
	return metav1.Condition{
		Type: controlplanev1.InitializedCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotInitializedReason,
		Message: "The cluster is not installed, or its API has not answered yet",
	}
}

func kubeconfigCondition(s *scope, d decision) metav1.Condition {
	condition := metav1.Condition{
		Type: controlplanev1.KubeconfigAvailableCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.KubeconfigAvailableReason,
	}
	switch {
	case d.kubeconfigForeign:
		condition.Reason = controlplanev1.KubeconfigUserProvidedReason
		condition.Message = fmt.Sprintf("Secret %s belongs to somebody else and is left alone", secret.Name(s.clusterName, secret.Kubeconfig))
	case d.kubeconfigProblem != "" || s.kubeconfig == nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.KubeconfigNotAvailableReason
		condition.Message = cmp.Or(d.kubeconfigProblem, "The credentials of the cluster are not published yet")
	}
	return condition
}

// versionsMatchCondition compares spec.version with the first Node (DESIGN D9).
func versionsMatchCondition(s *scope) metav1.Condition {
	condition := metav1.Condition{
		Type: controlplanev1.VersionsMatchCondition, Status: metav1.ConditionUnknown, Reason: controlplanev1.VersionUnknownReason,
		Message: "No Node has reported its version yet",
	}
	for _, m := range s.machines.SortedByCreationTimestamp() {
		if m.Status.NodeInfo == nil || m.Status.NodeInfo.KubeletVersion == "" {
			continue
		}
		kubelet := m.Status.NodeInfo.KubeletVersion
		if kubelet == s.controlPlane.Spec.Version {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, controlplanev1.VersionsMatchReason, ""
			return condition
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.VersionMismatchReason
		condition.Message = fmt.Sprintf("The Node of Machine %s runs %s: set spec.version, and the version of MachineDeployments, to %s", m.Name, kubelet, kubelet)
		return condition
	}
	return condition
}

// availableCondition is nil while nothing new is known of a cluster that was seen by an earlier manager.
func availableCondition(s *scope) *metav1.Condition {
	condition := &metav1.Condition{
		Type: controlplanev1.AvailableCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotAvailableReason,
	}
	nodes, ready := 0, 0
	var notReady []string
	for _, m := range s.machines.SortedByCreationTimestamp() {
		if !m.Status.NodeRef.IsDefined() {
			continue // It is being provisioned, or scaled up, and no member of the quorum yet.
		}
		nodes++
		if conditions.IsTrue(m, clusterv1.MachineNodeReadyCondition) {
			ready++
		} else {
			notReady = append(notReady, m.Name)
		}
	}
	switch {
	case !s.initialized() && s.recorded:
		condition.Message = conditions.GetMessage(s.controlPlane, controlplanev1.InstalledCondition)
	case !s.initialized():
		// The condition Installed was set before; clusterctl describe shows only this one, so it has to say why (DESIGN §4).
		condition.Message = "The cluster is not installed yet: " + conditions.GetMessage(s.controlPlane, controlplanev1.InstalledCondition)
	case s.connectionDown:
		condition.Reason = controlplanev1.ConnectionDownReason
		condition.Message = "The API of the cluster does not answer"
	case !s.connectionKnown && conditions.Has(s.controlPlane, controlplanev1.AvailableCondition):
		return nil
	case nodes == 0 || ready <= nodes/2:
		condition.Message = fmt.Sprintf("%d of %d control-plane Nodes are ready, which is no quorum", ready, nodes)
		if len(notReady) > 0 {
			condition.Message += "; not ready: " + strings.Join(notReady, ", ")
		}
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.AvailableReason
	}
	return condition
}

// setMachineAggregates sums up the conditions Ready and UpToDate of the Machines (CONTRACT §5.6).
func setMachineAggregates(cp *controlplanev1.OpenshiftAssistedControlPlane, machines collections.Machines) {
	conditions.Set(cp, aggregate(machines, clusterv1.MachineReadyCondition, controlplanev1.MachinesReadyCondition,
		clusterv1.NotReadyReason, clusterv1.ReadyUnknownReason, clusterv1.ReadyReason))
	// Machines get the condition in the pass after their creation; until then they would make the aggregate flicker.
	checked := machines.Filter(func(m *clusterv1.Machine) bool { return conditions.Has(m, clusterv1.MachineUpToDateCondition) })
	conditions.Set(cp, aggregate(checked, clusterv1.MachineUpToDateCondition, controlplanev1.MachinesUpToDateCondition,
		clusterv1.NotUpToDateReason, clusterv1.UpToDateUnknownReason, clusterv1.UpToDateReason))
}

func aggregate(machines collections.Machines, source, target, issue, unknown, info string) metav1.Condition {
	if len(machines) == 0 {
		return metav1.Condition{Type: target, Status: metav1.ConditionTrue, Reason: controlplanev1.NoReplicasReason}
	}
	strategy := conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(
		conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(issue, unknown, info)))}
	condition, err := conditions.NewAggregateCondition(machines.SortedByCreationTimestamp(), source, conditions.TargetConditionType(target), strategy)
	if err != nil {
		return metav1.Condition{Type: target, Status: metav1.ConditionUnknown, Reason: unknown, Message: err.Error()}
	}
	return *condition
}

func rollingOutCondition(machines collections.Machines) metav1.Condition {
	outdated := machines.Filter(func(m *clusterv1.Machine) bool { return conditions.IsFalse(m, clusterv1.MachineUpToDateCondition) })
	if len(outdated) == 0 {
		return metav1.Condition{Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotRollingOutReason}
	}
	return metav1.Condition{
		Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.RollingOutReason,
		Message: fmt.Sprintf("%d Machines are not up to date; they are not replaced: this provider does not roll out changes yet", len(outdated)),
	}
}

func scalingUpCondition(s *scope) metav1.Condition {
	replicas := int(ptr.Deref(s.controlPlane.Spec.Replicas, 0))
	condition := metav1.Condition{Type: controlplanev1.ScalingUpCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotScalingUpReason}
	if len(s.machines) < replicas && s.controlPlane.DeletionTimestamp.IsZero() {
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ScalingUpReason
		condition.Message = fmt.Sprintf("Scaling up from %d to %d replicas", len(s.machines), replicas)
		if s.machineProblem != "" {
			condition.Message += ": " + s.machineProblem
		}
	}
	return condition
}

func scalingDownCondition(s *scope) metav1.Condition {
	replicas := int(ptr.Deref(s.controlPlane.Spec.Replicas, 0))
	if !s.controlPlane.DeletionTimestamp.IsZero() {
		replicas = 0
	}
	condition := metav1.Condition{Type: controlplanev1.ScalingDownCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotScalingDownReason}
	if len(s.machines) > replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ScalingDownReason
		condition.Message = fmt.Sprintf("Scaling down from %d to %d replicas", len(s.machines), replicas)
		if replicas > 0 && s.initialized() {
			condition.Message += ": not supported after the installation; delete nothing by hand, set spec.replicas back"
		}
	}
	return condition
}
