// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// ownedConditions are the conditions that nobody else writes.
var ownedConditions = []string{
	controlplanev1.AvailableCondition,
	controlplanev1.InitializedCondition,
	controlplanev1.InstalledCondition,
	controlplanev1.InstallationMatchesSpecCondition,
	controlplanev1.KubeconfigAvailableCondition,
	controlplanev1.VersionsMatchCondition,
	controlplanev1.ReleaseResolvedCondition,
	controlplanev1.EtcdClusterHealthyCondition,
	controlplanev1.ControlPlaneComponentsHealthyCondition,
	controlplanev1.MachinesReadyCondition,
	controlplanev1.MachinesUpToDateCondition,
	controlplanev1.RollingOutCondition,
	controlplanev1.ScalingUpCondition,
	controlplanev1.ScalingDownCondition,
	controlplanev1.RemediatingCondition,
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
	bounded.SetCondition(cp, deletingCondition(d))
	bounded.SetCondition(cp, initializedCondition(s))
	setMachineAggregates(cp, s.machines)
	bounded.SetCondition(cp, rollingOutCondition(s.machines))
	bounded.SetCondition(cp, scalingUpCondition(s, d))
	bounded.SetCondition(cp, scalingDownCondition(s))
	bounded.SetCondition(cp, remediatingCondition(s.machines))
	if d.deletion == "" {
		// A cluster that goes away is not installed any further; what was known stays.
		setInstallStatus(s, d)
		bounded.SetCondition(cp, kubeconfigCondition(s, d))
		setMatchesSpec(s, d)
		setRelease(cp, s.release)
		bounded.SetCondition(cp, releaseCondition(cp, s.release))
		bounded.SetCondition(cp, versionsMatchCondition(s))
		for _, summary := range operatorSummaries {
			if condition := summary.condition(s); condition != nil {
				bounded.SetCondition(cp, *condition)
			}
		}
		if condition := availableCondition(s, d); condition != nil {
			bounded.SetCondition(cp, *condition)
		}
	}
	if c := conditions.Get(
		cp, controlplanev1.InstalledCondition,
	); c != nil && c.Reason == controlplanev1.InstallationFailedReason &&
		!wasFailed {
		r.event(s, corev1.EventTypeWarning, controlplanev1.EventInstallationFailed, "Install", "%s", c.Message)
	}
}

// tellUnread says that not all that is needed can be read, which is why nothing was decided. All else that was known stays.
func tellUnread(cp *controlplanev1.OpenshiftAssistedControlPlane, err error) {
	text := "Nothing is decided, because not all that is needed can be read: " + sentence(err.Error())
	conditionType := controlplanev1.AvailableCondition
	fallback := metav1.Condition{Status: metav1.ConditionUnknown, Reason: controlplanev1.ReadFailedReason}
	switch {
	case !cp.DeletionTimestamp.IsZero():
		conditionType, fallback.Status = controlplanev1.DeletingCondition, metav1.ConditionTrue
	case !ptr.Deref(cp.Status.Initialization.ControlPlaneInitialized, false):
		conditionType, fallback.Status = controlplanev1.InstalledCondition, metav1.ConditionFalse
	}
	condition := conditions.Get(cp, conditionType)
	// What is True stays so: that the cluster is installed, available or being deleted.
	if condition == nil || condition.Status != metav1.ConditionTrue {
		condition = &fallback
	}
	condition.Type, condition.Message = conditionType, text
	bounded.SetCondition(cp, *condition)
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
	case s.namesake != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.KubeconfigNameConflictReason, s.namesake
	case foreignKubeconfig(s):
		condition.Reason = controlplanev1.KubeconfigUserProvidedReason
		condition.Message = fmt.Sprintf("Secret %s belongs to somebody else and is left alone", s.kubeconfig.Name)
		if defect := defectOf(s); defect != "" {
			condition.Status = metav1.ConditionFalse
			condition.Message += ", but nobody can connect with it: " + defect
		}
	case d.kubeconfigProblem != "" || s.kubeconfig == nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.KubeconfigNotAvailableReason
		condition.Message = cmp.Or(d.kubeconfigProblem, "The credentials of the cluster are not published yet")
	}
	return condition
}

// versionsMatchCondition compares spec.version with the release and with what Nodes run, and the hosts with the release (DESIGN D9).
func versionsMatchCondition(s *scope) metav1.Condition {
	check := plan.VersionCheck{
		Version: s.controlPlane.Spec.Version, Release: s.controlPlane.Spec.DistributionVersion, Resolved: s.controlPlane.Status.Release,
		ControlPlane: s.machines.SortedByCreationTimestamp(), Workers: collections.FromMachines(s.workers...).SortedByCreationTimestamp(),
	}
	if s.cluster.Spec.Topology.IsDefined() {
		check.Topology = s.cluster.Name
	}
	problem, known := check.Problem()
	foreign := architectureCheck(s).Problem()
	condition := metav1.Condition{Type: controlplanev1.VersionsMatchCondition}
	switch {
	case problem != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.VersionMismatchReason, problem
	case foreign != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.ArchitectureNotInReleaseReason, foreign
	case known:
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.VersionsMatchReason
	default:
		condition.Status, condition.Reason = metav1.ConditionUnknown, controlplanev1.VersionUnknownReason
		condition.Message = "No Node has reported its version yet"
	}
	return condition
}
