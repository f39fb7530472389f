// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// Verdict is what a condition says to somebody who looks for faults.
type Verdict string

const (
	// Good: it is as it should be at the end.
	Good Verdict = "good"
	// Waits: it is on the way there.
	Waits Verdict = "waits"
	// Goes: something goes on, such as a rollout or a deletion.
	Goes Verdict = "goes on"
	// Wrong: somebody may have to act.
	Wrong Verdict = "wrong"
)

const (
	machineUpToDate        = clusterv1.MachineUpToDateCondition
	machineOwnerRemediated = clusterv1.MachineOwnerRemediatedCondition
)

// negative are the conditions that are True while something goes on, and False when all is well.
var negative = []string{
	clusterv1.DeletingCondition, clusterv1.PausedCondition, clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition,
	clusterv1.ScalingDownCondition, clusterv1.RemediatingCondition, clusterv1.MachineUpdatingCondition, controlplanev1.UpgradingCondition,
}

// The conditions of an AgentClusterInstall, as hive names them, that are not True at a good end.
const (
	installStopped           = "Stopped"
	installFailed            = "Failed"
	installPreparationFailed = "LastInstallationPreparationFailed"
)

// failures are conditions that are False unless something has failed.
var failures = []string{installFailed, installPreparationFailed}

// ordinary are the reasons for which a condition is False on the way to a good end. Those that begin with WaitingFor are too.
var ordinary = []string{
	bootstrapv1.InfraEnvPendingReason, bootstrapv1.InfraEnvDeletingReason, bootstrapv1.NetworkDataPendingReason,
	bootstrapv1.MachineDeletingReason, bootstrapv1.ClusterDeletingReason, bootstrapv1.HostNotAssociatedReason,
	bootstrapv1.ClaimingAgentReason, bootstrapv1.AgentDiscoveringReason, bootstrapv1.AgentBindingReason, bootstrapv1.AgentReadyReason,
	bootstrapv1.AgentInstallingReason, bootstrapv1.NodeJoinedReason,
	controlplanev1.NotInitializedReason, controlplanev1.InstallationOnHoldReason, controlplanev1.PreparingReason,
	controlplanev1.InstallingReason, controlplanev1.FinalizingReason, controlplanev1.RetryingReason, controlplanev1.ImportingReason,
	controlplanev1.ReleaseResolvingReason, controlplanev1.ReleaseResolutionSkippedReason, controlplanev1.VersionUnknownReason,
	controlplanev1.KubeconfigNotAvailableReason, controlplanev1.EtcdClusterInspectionFailedReason,
	controlplanev1.EtcdClusterHealthUnknownReason, controlplanev1.MachineRemediationDeferredReason,
	controlplanev1.NotUpgradingReason, controlplanev1.UpgradeRequestedReason, controlplanev1.UpgradeInProgressReason,
}

const waitingPrefix = "WaitingFor"

// waits reports whether a reason is one of those that pass by themselves.
func waits(reason string) bool {
	return strings.HasPrefix(reason, waitingPrefix) || slices.Contains(ordinary, reason)
}

// judged are the conditions whose being False is a fault unless the reason is ordinary. The others repeat what these say, on the same
// object or on another: the page shows them, but counts no fault twice.
var judged = map[string][]string{
	kindConfig: {
		bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.HostHealthyCondition,
		bootstrapv1.HostRecognizedCondition, bootstrapv1.AgentInstalledCondition,
	},
	kindControlPlane: {
		controlplanev1.InstalledCondition, controlplanev1.InstallationMatchesSpecCondition, controlplanev1.KubeconfigAvailableCondition,
		controlplanev1.VersionsMatchCondition, controlplanev1.ReleaseResolvedCondition, controlplanev1.EtcdClusterHealthyCondition,
		controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.UpgradingCondition,
	},
	kindMachine: {
		clusterv1.MachineHealthCheckSucceededCondition, machineOwnerRemediated, controlplanev1.MachineEtcdMemberHealthyCondition,
	},
}

// isFault reports whether a condition is a fault of its own.
func isFault(kind string, c metav1.Condition) bool {
	if !slices.Contains(judged[kind], c.Type) || waits(c.Reason) {
		return false
	}
	return c.Status == metav1.ConditionFalse || c.Type == controlplanev1.UpgradingCondition
}

// verdictOf says how a condition is shown.
func verdictOf(kind string, c metav1.Condition) Verdict {
	switch {
	case isFault(kind, c), slices.Contains(failures, c.Type) && c.Status == metav1.ConditionTrue:
		return Wrong
	case c.Type == installStopped, slices.Contains(failures, c.Type) && c.Status == metav1.ConditionFalse:
		return Good
	case slices.Contains(negative, c.Type) && c.Status == metav1.ConditionTrue:
		return Goes
	case slices.Contains(negative, c.Type), c.Status == metav1.ConditionTrue:
		return Good
	default:
		return Waits
	}
}
