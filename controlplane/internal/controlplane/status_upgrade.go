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
	cp, version := v.ControlPlane, v.Workload.Version
	if version == nil || d.Reason == "" {
		return
	}
	cp.Status.Upgrade = plan.UpgradeProgress(version)
	if completed := cmp.Or(plan.CompletedRelease(version), cp.Status.DistributionVersion); completed != cp.Status.DistributionVersion {
		if former := cp.Status.DistributionVersion; former != "" {
			r.event(
				v,
				corev1.EventTypeNormal,
				controlplanev1.EventUpgraded,
				"Upgrade",
				"The cluster runs %s now, and ran %s before",
				completed,
				former,
			)
		}
		cp.Status.DistributionVersion = completed
	}
	condition := metav1.Condition{
		Type: controlplanev1.UpgradingCondition, Status: metav1.ConditionFalse, Reason: d.Reason, Message: d.Message,
	}
	if refused := o.upgrade.refused(); refused != "" {
		condition.Reason, condition.Message = controlplanev1.UpgradeRefusedReason, refused
	}
	if slices.Contains(upgradesGoOn, condition.Reason) {
		condition.Status = metav1.ConditionTrue
	}
	bounded.SetCondition(cp, condition)
}
