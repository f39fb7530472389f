// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is the status and the reason of a condition.
type verdict struct {
	status metav1.ConditionStatus
	reason string
}

// setConditions derives the host's conditions from the rest of its status (M3-74). A host without a state has none yet.
func (p *hostPass) setConditions() {
	status := &p.host.Status
	if status.Provisioning.State == bmov1alpha1.StateNone {
		return
	}
	for _, condition := range []struct {
		kind string
		verdict
	}{
		{bmov1alpha1.ReadyCondition, readyVerdict(status)},
		{bmov1alpha1.AvailableForProvisioningCondition, availableVerdict(status)},
		{bmov1alpha1.HealthyCondition, verdict{metav1.ConditionUnknown, bmov1alpha1.UnknownHealthReason}},
		{bmov1alpha1.ManageableCondition, manageableVerdict(status, p.metal.powerFailing)},
		{bmov1alpha1.ProgressingCondition, progressingVerdict(status)},
		{bmov1alpha1.ProvisionedCondition, provisionedVerdict(status)},
	} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: condition.kind, Status: condition.status, Reason: condition.reason, ObservedGeneration: p.host.Generation,
		})
	}
}

func readyVerdict(status *bmov1alpha1.BareMetalHostStatus) verdict {
	switch status.OperationalStatus {
	case bmov1alpha1.OperationalStatusError:
		return verdict{metav1.ConditionFalse, bmov1alpha1.ErrorReason}
	case bmov1alpha1.OperationalStatusDetached:
		return verdict{metav1.ConditionFalse, bmov1alpha1.DetachedReason}
	}
	return provisionedVerdict(status)
}

func provisionedVerdict(status *bmov1alpha1.BareMetalHostStatus) verdict {
	switch status.Provisioning.State {
	case bmov1alpha1.StateProvisioned, bmov1alpha1.StateExternallyProvisioned:
		return verdict{metav1.ConditionTrue, bmov1alpha1.ProvisionedReason}
	}
	return verdict{metav1.ConditionFalse, bmov1alpha1.NotProvisionedReason}
}

func availableVerdict(status *bmov1alpha1.BareMetalHostStatus) verdict {
	if status.Provisioning.State == bmov1alpha1.StateAvailable {
		return verdict{metav1.ConditionTrue, bmov1alpha1.AvailableReason}
	}
	return verdict{metav1.ConditionFalse, bmov1alpha1.NotAvailableReason}
}

func manageableVerdict(status *bmov1alpha1.BareMetalHostStatus, powerFailing bool) verdict {
	state := status.Provisioning.State
	switch {
	case state == bmov1alpha1.StateUnmanaged:
		return verdict{metav1.ConditionFalse, bmov1alpha1.NotManagedReason}
	case state == bmov1alpha1.StateRegistering && status.ErrorType == bmov1alpha1.RegistrationError:
		return verdict{metav1.ConditionFalse, bmov1alpha1.RegistrationFailedReason}
	case state == bmov1alpha1.StateRegistering:
		return verdict{metav1.ConditionFalse, bmov1alpha1.RegisteringReason}
	case state == bmov1alpha1.StateProvisioned && powerFailing:
		return verdict{metav1.ConditionFalse, bmov1alpha1.PowerFailureReason}
	}
	return verdict{metav1.ConditionTrue, bmov1alpha1.ManageableReason}
}

func progressingVerdict(status *bmov1alpha1.BareMetalHostStatus) verdict {
	if status.OperationalStatus == bmov1alpha1.OperationalStatusDetached {
		return verdict{metav1.ConditionFalse, bmov1alpha1.DetachedReason}
	}
	reason := map[bmov1alpha1.ProvisioningState]string{
		bmov1alpha1.StateRegistering:             bmov1alpha1.RegisteringReason,
		bmov1alpha1.StateInspecting:              bmov1alpha1.InspectingReason,
		bmov1alpha1.StatePreparing:               bmov1alpha1.PreparingReason,
		bmov1alpha1.StateProvisioning:            bmov1alpha1.ProvisioningReason,
		bmov1alpha1.StateDeprovisioning:          bmov1alpha1.DeprovisioningReason,
		bmov1alpha1.StatePoweringOffBeforeDelete: bmov1alpha1.PoweringOffBeforeDeleteReason,
		bmov1alpha1.StateDeleting:                bmov1alpha1.DeletingReason,
	}[status.Provisioning.State]
	if reason == "" {
		return verdict{metav1.ConditionFalse, bmov1alpha1.NotProgressingReason}
	}
	return verdict{metav1.ConditionTrue, reason}
}
