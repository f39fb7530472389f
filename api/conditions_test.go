// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	. "github.com/onsi/gomega"

	kubeadmv1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

func TestContractConditionNames(t *testing.T) {
	pairs := []struct{ ours, theirs string }{
		{controlplanev1.AvailableCondition, kubeadmv1.KubeadmControlPlaneAvailableCondition},
		{controlplanev1.AvailableReason, kubeadmv1.KubeadmControlPlaneAvailableReason},
		{controlplanev1.NotAvailableReason, kubeadmv1.KubeadmControlPlaneNotAvailableReason},
		{controlplanev1.ConnectionDownReason, clusterv1.ConnectionDownReason},
		{controlplanev1.InitializedCondition, kubeadmv1.KubeadmControlPlaneInitializedCondition},
		{controlplanev1.InitializedReason, kubeadmv1.KubeadmControlPlaneInitializedReason},
		{controlplanev1.NotInitializedReason, kubeadmv1.KubeadmControlPlaneNotInitializedReason},
		{controlplanev1.KubeconfigAvailableReason, kubeadmv1.KubeadmControlPlaneCertificatesAvailableReason},
		{controlplanev1.KubeconfigNotAvailableReason, kubeadmv1.KubeadmControlPlaneCertificatesNotAvailableReason},
		{controlplanev1.EtcdClusterHealthyCondition, kubeadmv1.KubeadmControlPlaneEtcdClusterHealthyCondition},
		{controlplanev1.EtcdClusterHealthyReason, kubeadmv1.KubeadmControlPlaneEtcdClusterHealthyReason},
		{controlplanev1.EtcdClusterNotHealthyReason, kubeadmv1.KubeadmControlPlaneEtcdClusterNotHealthyReason},
		{controlplanev1.EtcdClusterHealthUnknownReason, kubeadmv1.KubeadmControlPlaneEtcdClusterHealthUnknownReason},
		{controlplanev1.EtcdClusterInspectionFailedReason, kubeadmv1.KubeadmControlPlaneEtcdClusterInspectionFailedReason},
		{controlplanev1.EtcdClusterConnectionDownReason, kubeadmv1.KubeadmControlPlaneEtcdClusterConnectionDownReason},
		{controlplanev1.ControlPlaneComponentsHealthyCondition, kubeadmv1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition},
		{controlplanev1.ControlPlaneComponentsHealthyReason, kubeadmv1.KubeadmControlPlaneControlPlaneComponentsHealthyReason},
		{controlplanev1.ControlPlaneComponentsNotHealthyReason, kubeadmv1.KubeadmControlPlaneControlPlaneComponentsNotHealthyReason},
		{controlplanev1.ControlPlaneComponentsHealthUnknownReason, kubeadmv1.KubeadmControlPlaneControlPlaneComponentsHealthUnknownReason},
		{controlplanev1.ControlPlaneComponentsInspectionFailedReason, kubeadmv1.KubeadmControlPlaneControlPlaneComponentsInspectionFailedReason},
		{controlplanev1.ControlPlaneComponentsConnectionDownReason, kubeadmv1.KubeadmControlPlaneControlPlaneComponentsConnectionDownReason},
		{controlplanev1.MachinesReadyCondition, kubeadmv1.KubeadmControlPlaneMachinesReadyCondition},
		{controlplanev1.MachinesReadyReason, kubeadmv1.KubeadmControlPlaneMachinesReadyReason},
		{controlplanev1.MachinesNotReadyReason, kubeadmv1.KubeadmControlPlaneMachinesNotReadyReason},
		{controlplanev1.MachinesReadyUnknownReason, kubeadmv1.KubeadmControlPlaneMachinesReadyUnknownReason},
		{controlplanev1.MachinesReadyNoReplicasReason, kubeadmv1.KubeadmControlPlaneMachinesReadyNoReplicasReason},
		{controlplanev1.MachinesReadyInternalErrorReason, kubeadmv1.KubeadmControlPlaneMachinesReadyInternalErrorReason},
		{controlplanev1.MachinesUpToDateCondition, kubeadmv1.KubeadmControlPlaneMachinesUpToDateCondition},
		{controlplanev1.MachinesUpToDateReason, kubeadmv1.KubeadmControlPlaneMachinesUpToDateReason},
		{controlplanev1.MachinesNotUpToDateReason, kubeadmv1.KubeadmControlPlaneMachinesNotUpToDateReason},
		{controlplanev1.MachinesUpToDateUnknownReason, kubeadmv1.KubeadmControlPlaneMachinesUpToDateUnknownReason},
		{controlplanev1.MachinesUpToDateNoReplicasReason, kubeadmv1.KubeadmControlPlaneMachinesUpToDateNoReplicasReason},
		{controlplanev1.MachinesUpToDateInternalErrorReason, kubeadmv1.KubeadmControlPlaneMachinesUpToDateInternalErrorReason},
		{controlplanev1.RollingOutCondition, kubeadmv1.KubeadmControlPlaneRollingOutCondition},
		{controlplanev1.RollingOutReason, kubeadmv1.KubeadmControlPlaneRollingOutReason},
		{controlplanev1.NotRollingOutReason, kubeadmv1.KubeadmControlPlaneNotRollingOutReason},
		{controlplanev1.ScalingUpCondition, kubeadmv1.KubeadmControlPlaneScalingUpCondition},
		{controlplanev1.ScalingUpReason, kubeadmv1.KubeadmControlPlaneScalingUpReason},
		{controlplanev1.NotScalingUpReason, kubeadmv1.KubeadmControlPlaneNotScalingUpReason},
		{controlplanev1.ScalingDownCondition, kubeadmv1.KubeadmControlPlaneScalingDownCondition},
		{controlplanev1.ScalingDownReason, kubeadmv1.KubeadmControlPlaneScalingDownReason},
		{controlplanev1.NotScalingDownReason, kubeadmv1.KubeadmControlPlaneNotScalingDownReason},
		{controlplanev1.RemediatingCondition, kubeadmv1.KubeadmControlPlaneRemediatingCondition},
		{controlplanev1.NotRemediatingReason, kubeadmv1.KubeadmControlPlaneNotRemediatingReason},
		{controlplanev1.RemediatingReason, kubeadmv1.KubeadmControlPlaneRemediatingReason},
		{controlplanev1.MachineRemediationDeletingReason, kubeadmv1.KubeadmControlPlaneMachineRemediationMachineDeletingReason},
		{controlplanev1.MachineRemediationDeferredReason, kubeadmv1.KubeadmControlPlaneMachineRemediationDeferredReason},
		{controlplanev1.MachineCannotBeRemediatedReason, kubeadmv1.KubeadmControlPlaneMachineCannotBeRemediatedReason},
		{controlplanev1.MachineEtcdMemberHealthyCondition, kubeadmv1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition},
		{controlplanev1.MachineEtcdMemberHealthyReason, kubeadmv1.KubeadmControlPlaneMachineEtcdMemberHealthyReason},
		{controlplanev1.MachineEtcdMemberNotHealthyReason, kubeadmv1.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason},
		{controlplanev1.MachineEtcdMemberInspectionFailedReason, kubeadmv1.KubeadmControlPlaneMachineEtcdMemberInspectionFailedReason},
		{controlplanev1.DeletingCondition, kubeadmv1.KubeadmControlPlaneDeletingCondition},
		{controlplanev1.NotDeletingReason, kubeadmv1.KubeadmControlPlaneNotDeletingReason},
		{controlplanev1.WaitingForWorkersDeletionReason, kubeadmv1.KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason},
		{controlplanev1.WaitingForMachineDeletionReason, kubeadmv1.KubeadmControlPlaneDeletingWaitingForMachineDeletionReason},
		{controlplanev1.DeletionCompletedReason, kubeadmv1.KubeadmControlPlaneDeletingDeletionCompletedReason},
		{controlplanev1.MachineUpToDateReason, clusterv1.MachineUpToDateReason},
		{controlplanev1.MachineNotUpToDateReason, clusterv1.MachineNotUpToDateReason},
	}
	t.Run("CP-82 types and reasons are those of the kubeadm control plane", func(t *testing.T) {
		for _, pair := range pairs {
			NewWithT(t).Expect(pair.ours).To(Equal(pair.theirs))
		}
	})
}
