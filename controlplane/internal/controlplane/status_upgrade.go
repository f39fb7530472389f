// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// upgradesGoOn are the reasons of the condition Upgrading with which it is True.
var upgradesGoOn = []string{
	controlplanev1.UpgradeRequestedReason, controlplanev1.UpgradeInProgressReason, controlplanev1.UpgradeStalledReason,
	controlplanev1.UpgradeFailingReason,
}

// setUpgrade tells which release the cluster runs, and how it comes to another (DESIGN D29). What was known stays while the cluster does
// not answer.
func (r *Reconciler) setUpgrade(v *view.View, d plan.UpgradeDecision, o *outcomes) {
	if d.Reason == "" {
		return
	}
	r.setRunningRelease(v)
	condition := metav1.Condition{
		Type: controlplanev1.UpgradingCondition, Status: metav1.ConditionFalse, Reason: d.Reason, Message: d.Message,
	}
	if refused := o.upgrade.refused(); refused != "" {
		condition.Reason, condition.Message = controlplanev1.UpgradeRefusedReason, refused
	}
	switch {
	case condition.Reason == controlplanev1.UpgradeOtherClusterReason:
		condition.Status = metav1.ConditionUnknown
	case slices.Contains(upgradesGoOn, condition.Reason):
		condition.Status = metav1.ConditionTrue
	}
	bounded.SetCondition(v.ControlPlane, condition)
}

// setRunningRelease tells which release the cluster runs, and how far it is with another. What was known stays when it is not known now.
func (r *Reconciler) setRunningRelease(v *view.View) {
	cp, version := v.ControlPlane, v.Workload.Version
	if version == nil {
		return
	}
	cp.Status.Upgrade = plan.UpgradeProgress(version)
	former := cp.Status.DistributionVersion
	cp.Status.DistributionVersion = cmp.Or(plan.CompletedRelease(version), former)
	if former != "" && cp.Status.DistributionVersion != former {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventUpgraded, "Upgrade", "The cluster runs %s now, and ran %s before",
			cp.Status.DistributionVersion, former)
	}
}
