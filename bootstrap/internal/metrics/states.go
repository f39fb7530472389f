// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// unrecognisedStates are the states of a host by the reason of HostRecognized, while that is not True.
var unrecognisedStates = map[string]string{
	"":                                      metrics.StateWaitingForHost,
	bootstrapv1.WaitingForCRDsReason:        metrics.StateWaitingForHost,
	bootstrapv1.WaitingForHostReason:        metrics.StateWaitingForHost,
	bootstrapv1.WaitingForAgentReason:       metrics.StateWaitingForAgent,
	bootstrapv1.HostNeverRegisteredReason:   metrics.StateWaitingForAgent,
	bootstrapv1.AgentLostReason:             metrics.StateWaitingForAgent,
	bootstrapv1.ClaimingAgentReason:         metrics.StateReady,
	bootstrapv1.AgentNotRecognizedReason:    metrics.StateNotRecognised,
	bootstrapv1.AgentClaimedByOtherReason:   metrics.StateNotRecognised,
	bootstrapv1.SeveralAgentsReason:         metrics.StateSeveralMatch,
	bootstrapv1.SeveralHostsReason:          metrics.StateSeveralMatch,
	bootstrapv1.DuplicateSerialNumberReason: metrics.StateDuplicate,
	bootstrapv1.ReadFailedReason:            metrics.StateNeedsAttention,
}

// recognisedStates are the states of a recognised host by the reason of AgentInstalled. Those that are not here need attention.
var recognisedStates = map[string]string{
	"":                                        metrics.StateReady,
	bootstrapv1.WaitingForRecognitionReason:   metrics.StateReady,
	bootstrapv1.AgentDiscoveringReason:        metrics.StateReady,
	bootstrapv1.WaitingForClusterReason:       metrics.StateReady,
	bootstrapv1.AgentBindingReason:            metrics.StateReady,
	bootstrapv1.AgentReadyReason:              metrics.StateReady,
	bootstrapv1.AgentValidationsFailingReason: metrics.StateValidationsFailing,
	bootstrapv1.AgentDisconnectedReason:       metrics.StateDisconnected,
	bootstrapv1.AgentInstallingReason:         metrics.StateInstalling,
	bootstrapv1.AgentInstallationFailedReason: metrics.StateFailed,
	bootstrapv1.AgentInstalledReason:          metrics.StateInstalled,
	bootstrapv1.NodeJoinedReason:              metrics.StateInstalled,
}

// State is the state of a config's host.
func State(c *bootstrapv1.OpenshiftAssistedConfig) string {
	if !conditions.IsTrue(c, bootstrapv1.HostRecognizedCondition) {
		if state, known := unrecognisedStates[conditions.GetReason(c, bootstrapv1.HostRecognizedCondition)]; known {
			return state
		}
		return metrics.StateNeedsAttention
	}
	if state, known := recognisedStates[conditions.GetReason(c, bootstrapv1.AgentInstalledCondition)]; known {
		return state
	}
	return metrics.StateNeedsAttention
}

// configSteps are the steps of a config's deletion by the reason of its condition Deleting.
var configSteps = map[string]string{
	bootstrapv1.WaitingForMachineReason:          metrics.StepMachine,
	bootstrapv1.WaitingForAgentDeletionReason:    metrics.StepAgent,
	bootstrapv1.WaitingForInfraEnvDeletionReason: metrics.StepInfraEnv,
}

// machineSteps are the steps of a Machine's deletion by the reason of its condition Deleting.
var machineSteps = map[string]string{
	clusterv1.MachineDeletingWaitingForPreDrainHookReason:           metrics.StepPreDrainHook,
	clusterv1.MachineDeletingDrainingNodeReason:                     metrics.StepDrain,
	clusterv1.MachineDeletingWaitingForVolumeDetachReason:           metrics.StepVolumes,
	clusterv1.MachineDeletingWaitingForPreTerminateHookReason:       metrics.StepPreTerminateHook,
	clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason: metrics.StepInfrastructure,
	clusterv1.MachineDeletingWaitingForBootstrapDeletionReason:      metrics.StepBootstrap,
	clusterv1.MachineDeletingDeletingNodeReason:                     metrics.StepNode,
}

func stepOf(o conditions.Getter, conditionType string, steps map[string]string) string {
	if step, known := steps[conditions.GetReason(o, conditionType)]; known {
		return step
	}
	return metrics.StepOther
}
