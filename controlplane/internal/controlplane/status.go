// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/bounded"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// ownedConditions are the conditions that nobody else writes.
var ownedConditions = []string{
	controlplanev1.AvailableCondition, controlplanev1.InitializedCondition, controlplanev1.InstalledCondition,
	controlplanev1.InstallationMatchesSpecCondition, controlplanev1.KubeconfigAvailableCondition, controlplanev1.VersionsMatchCondition,
	controlplanev1.ReleaseResolvedCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
	controlplanev1.MachinesReadyCondition, controlplanev1.MachinesUpToDateCondition, controlplanev1.RollingOutCondition,
	controlplanev1.ScalingUpCondition, controlplanev1.ScalingDownCondition, controlplanev1.RemediatingCondition,
	controlplanev1.UpgradingCondition, controlplanev1.DeletingCondition, clusterv1.PausedCondition,
}

// updateStatus computes conditions and counters from the facts of the pass, in memory.
func (r *Reconciler) updateStatus(v *view.View, d decision, o *outcomes) {
	cp := v.ControlPlane
	wasFailed := slices.Contains(failedReasons, conditions.GetReason(cp, controlplanev1.InstalledCondition))
	if d.initialize {
		cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventInitialized, "Initialize", "The cluster is installed and its API answers")
	}
	machines := o.owned(v)
	setCounters(cp, v.ClusterName, machines)
	setEtcd(cp, v.Workload.Etcd)
	bounded.SetCondition(cp, deletingCondition(d))
	bounded.SetCondition(cp, initializedCondition(v))
	setMachineAggregates(cp, machines)
	bounded.SetCondition(cp, rollingOutCondition(v, d, machines))
	bounded.SetCondition(cp, scalingUpCondition(v, d, o))
	bounded.SetCondition(cp, scalingDownCondition(v, d, o))
	bounded.SetCondition(cp, remediatingCondition(v, d, machines))
	if v.Life != view.Deleting || keepsCredential(v) {
		bounded.SetCondition(cp, kubeconfigCondition(v, d, o))
	}
	if v.Life != view.Deleting {
		// A cluster that goes away is not installed any further; what was known stays.
		setInstallStatus(v, d, o)
		setMatchesSpec(v, d)
		setRelease(cp, v.Release)
		bounded.SetCondition(cp, releaseCondition(cp, v.Release))
		r.setUpgrade(v, d.upgrade, o)
		if condition := versionsMatchCondition(v); condition != nil {
			bounded.SetCondition(cp, *condition)
		}
		for _, summary := range operatorSummaries {
			if condition := summary.condition(v); condition != nil {
				bounded.SetCondition(cp, *condition)
			}
		}
		if condition := availableCondition(v, d, o); condition != nil {
			bounded.SetCondition(cp, *condition)
		}
	}
	if c := conditions.Get(cp, controlplanev1.InstalledCondition); c != nil && slices.Contains(failedReasons, c.Reason) && !wasFailed {
		r.event(v, corev1.EventTypeWarning, controlplanev1.EventInstallationFailed, "Install", "%s", c.Message)
	}
}

// tellUnread says that not all that is needed can be read, which is why nothing was decided. All else that was known stays.
func tellUnread(cp *controlplanev1.OpenshiftAssistedControlPlane, err error) {
	conditionType, unread := controlplanev1.AvailableCondition, metav1.ConditionUnknown
	switch {
	case !cp.DeletionTimestamp.IsZero():
		conditionType, unread = controlplanev1.DeletingCondition, metav1.ConditionTrue
	case !ptr.Deref(cp.Status.Initialization.ControlPlaneInitialized, false):
		conditionType, unread = controlplanev1.InstalledCondition, metav1.ConditionFalse
	}
	fact.TellUnread(cp, conditionType, fact.Fact{Status: unread, Reason: controlplanev1.ReadFailedReason}, err,
		append(slices.Clone(failedReasons), controlplanev1.PreparationFailedReason)...)
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
	if d.deletion.step == "" {
		return metav1.Condition{Type: controlplanev1.DeletingCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotDeletingReason}
	}
	return metav1.Condition{
		Type: controlplanev1.DeletingCondition, Status: metav1.ConditionTrue, Reason: d.deletion.reason, Message: d.deletion.message,
	}
}

func initializedCondition(v *view.View) metav1.Condition {
	if v.Initialized() {
		return metav1.Condition{Type: controlplanev1.InitializedCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.InitializedReason}
	}
	return metav1.Condition{
		Type: controlplanev1.InitializedCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotInitializedReason,
		Message: "The cluster is not installed, or its API has not answered yet",
	}
}

func kubeconfigCondition(v *view.View, d decision, o *outcomes) metav1.Condition {
	condition := metav1.Condition{
		Type: controlplanev1.KubeconfigAvailableCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.KubeconfigAvailableReason,
	}
	switch {
	case v.Kubeconfigs.Namesake != "":
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.KubeconfigNameConflictReason
		condition.Message = v.Kubeconfigs.Namesake
	case foreignKubeconfig(v):
		condition.Reason = controlplanev1.KubeconfigUserProvidedReason
		condition.Message = fmt.Sprintf("Secret %s belongs to somebody else and is left alone", v.Kubeconfigs.Cluster.Name)
		if defect := defectOf(v); defect != "" {
			condition.Status = metav1.ConditionFalse
			condition.Message += ", but nobody can connect with it: " + defect
		}
	case d.kubeconfig.problem != "" || v.Kubeconfigs.Cluster == nil && !o.published:
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.KubeconfigNotAvailableReason
		condition.Message = cmp.Or(d.kubeconfig.problem, o.kubeconfig.refused(), "The credentials of the cluster are not published yet")
	default:
		condition.Message = heldCredential(v, d, o)
	}
	return condition
}

// heldCredential says which credential <cluster>-kubeconfig of an installed cluster holds, and which Secret cannot be written: a copy of
// the installer's credential that is refused keeps the first token away, and leaves nothing to come back with.
func heldCredential(v *view.View, d decision, o *outcomes) string {
	if o.token != nil {
		return credentialText(plan.CredentialToken, o.kubeconfig.refused(), *o.token)
	}
	note := cmp.Or(o.notIssued, d.kubeconfig.note)
	if refused := o.kubeconfig.refused(); refused != "" {
		note = strings.TrimPrefix(note+"; "+refused, "; ")
	}
	return credentialText(d.kubeconfig.holds, note, tokenLifeOf(v.Kubeconfigs.Cluster))
}

// versionsMatchCondition compares spec.version with the release and with what Nodes run, and the hosts with the release (DESIGN D9). It is
// nil while nobody knows which release an installed cluster runs or goes to: its Nodes alone do not tell, and what was known stays.
func versionsMatchCondition(v *view.View) *metav1.Condition {
	condition := &metav1.Condition{
		Type: controlplanev1.VersionsMatchCondition, Status: metav1.ConditionUnknown, Reason: controlplanev1.VersionUnknownReason,
		Message: "The cluster is not installed yet, or no Node has reported its version",
	}
	if v.Life.Installed() && v.Workload.Version == nil {
		if conditions.Has(v.ControlPlane, condition.Type) {
			return nil
		}
		condition.Message = "The cluster has not said yet which release it runs"
		return condition
	}
	check := plan.VersionCheck{
		Version: v.ControlPlane.Spec.Version, Release: v.ControlPlane.Spec.DistributionVersion,
		Resolved: v.ControlPlane.Status.Release, ControlPlane: v.Machines.Owned.SortedByCreationTimestamp(),
		Workers: v.Machines.Workers,
	}
	if v.Cluster.Spec.Topology.IsDefined() {
		check.Topology = v.Cluster.Name
	}
	check.Running, check.Upgrading = plan.Followed(v), plan.IsUpgrading(v)
	problem, known := check.Problem()
	known = known && v.Life.Installed() // Until then Nodes come one after the other.
	foreign := architectureCheck(v).Problem()
	switch {
	case problem != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.VersionMismatchReason, problem
	case foreign != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.ArchitectureNotInReleaseReason, foreign
	case known:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, controlplanev1.VersionsMatchReason, ""
	}
	return condition
}

// setEtcd counts the members of etcd as its operator does. What was known stays while it does not answer.
func setEtcd(cp *controlplanev1.OpenshiftAssistedControlPlane, report *workload.EtcdReport) {
	if report == nil {
		return
	}
	if members, healthy := plan.EtcdMembers(report.MembersAvailable.Message); members > 0 {
		cp.Status.Etcd = controlplanev1.EtcdStatus{
			Members: ptr.To(int32(members)), HealthyMembers: ptr.To(int32(healthy)),
		}
	}
}
