// SPDX-License-Identifier: Apache-2.0

package view

import (
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// Settled reports whether a control plane has come to rest, as its last pass has left it: all is well, and nothing is to be done.
func Settled(cp *controlplanev1.OpenshiftAssistedControlPlane) bool {
	if !cp.DeletionTimestamp.IsZero() || cp.Generation != cp.Status.ObservedGeneration ||
		cp.Spec.DistributionVersion != cp.Status.DistributionVersion {
		return false
	}
	for _, well := range []string{
		controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
		controlplanev1.MachinesReadyCondition,
	} {
		if !conditions.IsTrue(cp, well) {
			return false
		}
	}
	for _, going := range []string{
		controlplanev1.RollingOutCondition, controlplanev1.ScalingUpCondition, controlplanev1.ScalingDownCondition,
		controlplanev1.RemediatingCondition, controlplanev1.UpgradingCondition,
	} {
		if !conditions.IsFalse(cp, going) {
			return false
		}
	}
	return true
}
