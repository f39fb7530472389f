// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// mayBegin reports whether nothing of ours keeps assisted-service from beginning: the set of hosts is fixed, and the hold is cleared.
func mayBegin(install view.Install) bool {
	return install.Closed() && !install.AgentClusterInstall.Spec.HoldInstallation
}

// preparationFailure says why assisted-service could not prepare the installation; empty when it could, or has not tried. The service tries
// again for ever, and shows the reason for some seconds of every round only (ASSISTED 3.9 and 3.10): what the condition Installed said
// stays until hosts are being installed, or the user changes what is installed. Without that, the condition would change several times a
// round.
func preparationFailure(v *view.View, phase assisted.Phase) string {
	if !mayBegin(v.Install) || phase != assisted.PhaseWaiting && phase != assisted.PhasePreparing {
		return ""
	}
	const prefix, suffix = "The installation cannot be prepared: ", ". assisted-service tries again until it can"
	failed := assisted.ClusterCondition(v.Install.AgentClusterInstall, hiveext.ClusterLastInstallationPreparationFailedCondition)
	if failed != nil && failed.Status == corev1.ConditionTrue {
		return prefix + sentence(cmp.Or(failed.Message, failed.Reason)) + suffix
	}
	if host := unpreparedHost(v); host != "" {
		return prefix + sentence(host) + suffix
	}
	switch reason := conditions.GetReason(v.ControlPlane, controlplanev1.InstalledCondition); {
	case reason == controlplanev1.PreparationFailedReason:
		return conditions.GetMessage(v.ControlPlane, controlplanev1.InstalledCondition)
	case reason == controlplanev1.PreparingReason && phase == assisted.PhaseWaiting:
		return prefix + sentence(
			cmp.Or(
				v.Install.AgentClusterInstall.Status.DebugInfo.StateInfo, "AgentClusterInstall "+v.Install.AgentClusterInstall.Name+" does not say why",
			),
		) + suffix
	default:
		return ""
	}
}

// setMatchesSpec says whether the cluster is installed as the control plane asks for. Between the start of the installation and the moment
// at which admission knows of it, a change of spec.install is accepted and has no effect. Once the cluster is initialized nothing new is
// found out: a later release of this provider may render the same spec in another way.
func setMatchesSpec(v *view.View, d decision) {
	if v.Install.AgentClusterInstall == nil || d.attempt.Retrying || plan.Changeable(v) {
		if !v.Life.Installed() {
			conditions.Delete(v.ControlPlane, controlplanev1.InstallationMatchesSpecCondition)
		}
		return
	}
	switch known := conditions.Get(v.ControlPlane, controlplanev1.InstallationMatchesSpecCondition); {
	case v.Install.Phase() == assisted.PhaseUnknown, v.Install.Phase() == assisted.PhasePreparing:
		return // A preparation may fail, and the next one follows the change.
	case v.Initialized() && (known == nil || known.Status == metav1.ConditionTrue):
		return
	}
	update, err := render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster}.Update(v.Install.AgentClusterInstall)
	if err != nil || v.Install.AgentClusterInstall.Annotations[assisted.InstallSpecAnnotation] == "" {
		return
	}
	condition := metav1.Condition{
		Type: controlplanev1.InstallationMatchesSpecCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.InstallationMatchesReason,
	}
	if update != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.ChangedTooLateReason
		condition.Message = "spec.install, or another field that the cluster is installed from, was changed after the installation had begun: " +
			"the cluster is installed without the change. To have it with the change, delete the Cluster and create it again"
	}
	bounded.SetCondition(v.ControlPlane, condition)
}

// maxText bounds what is repeated of a text of assisted-service, in bytes: it may hold the output of a command, and a condition holds 32
// KiB.
const maxText = 2048

// sentence is a text of assisted-service without the full stop at its end, on one line and not too long: Cluster API takes a further line
// for another item of its list.
func sentence(text string) string {
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ". ")
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// unpreparedHost names the first host that could not be prepared, with its reason; empty when there is none.
func unpreparedHost(v *view.View) string {
	for _, a := range v.BoundAgents() {
		if a.Status.DebugInfo.State == assisted.AgentStatePreparingFailed {
			return fmt.Sprintf("the host of Machine %s (Agent %s): %s", view.MachineOf(a), a.Name, a.Status.DebugInfo.StateInfo)
		}
	}
	return ""
}

// unmetReasons are those of the condition RequirementsMet that say more than that hosts are not ready, which the hosts say themselves.
var unmetReasons = []string{
	hiveext.ClusterInsufficientAgentsReason, hiveext.ClusterUnsyncedAgentsReason, hiveext.ClusterUnapprovedAgentsReason,
}

// unmetRequirements says what assisted-service waits for although all hosts are ready and nothing is held; empty when it waits for nothing.
func unmetRequirements(v *view.View) string {
	met := assisted.ClusterCondition(v.Install.AgentClusterInstall, hiveext.ClusterRequirementsMetCondition)
	if !mayBegin(v.Install) || met == nil || met.Status != corev1.ConditionFalse ||
		!slices.Contains(unmetReasons, met.Reason) {
		return ""
	}
	text := fmt.Sprintf("assisted-service does not begin: %s", met.Message)
	if len(v.Install.Strangers) > 0 {
		text += fmt.Sprintf("; Agents of other namespaces are bound to ClusterDeployment %s and count: unbind or delete them: %s",
			v.ControlPlane.Name, firstOf(v.Install.Strangers))
	}
	return text
}

// firstOf joins names and says how many there are beyond maxProblems.
func firstOf(names []string) string {
	if more := len(names) - maxProblems; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxProblems], ", "), more)
	}
	return strings.Join(names, ", ")
}
