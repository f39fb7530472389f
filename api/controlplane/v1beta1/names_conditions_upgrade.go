// SPDX-License-Identifier: Apache-2.0

package v1beta1

// UpgradingCondition tells how the upgrade to spec.distributionVersion goes, in the words of the cluster's version operator. It is True
// while the cluster is being upgraded, also when somebody else has begun it, and False while it is not, or waits (DESIGN D29).
const (
	UpgradingCondition = "Upgrading"

	// NotUpgradingReason: the cluster runs spec.distributionVersion, or a newer release.
	NotUpgradingReason = "NotUpgrading"

	// UpgradeWaitingForVersionsReason: spec.version is not the Kubernetes version of spec.distributionVersion, or the image is that of
	// another release; the upgrade begins when all are set. The message has the field.
	UpgradeWaitingForVersionsReason = "WaitingForVersions"

	// UpgradeImageUnknownReason: nobody tells the digest of the release image, without which the cluster cannot verify it; the message says
	// where to set it.
	UpgradeImageUnknownReason = "ImageUnknown"

	// UpgradeNotPossibleReason: the release is more than one minor version ahead, or the channel does not offer it; the message says which
	// minor version is next.
	UpgradeNotPossibleReason = "NotPossible"

	// UpgradeWaitingForControlPlaneReason: the upgrade begins when the control plane is well, none of its Machines comes or goes, and the
	// cluster has answered to its last request; the message lists what is waited for.
	UpgradeWaitingForControlPlaneReason = "WaitingForControlPlane"

	// UpgradeRisksNotAcceptedReason: the release has known risks for this cluster that spec.upgrade.acceptedRisks does not name.
	UpgradeRisksNotAcceptedReason = "RisksNotAccepted"

	// UpgradeNotAcknowledgedReason: an administrator has to acknowledge changes of the release first, in spec.upgrade.acknowledgements; the
	// message has the keys, or why they cannot be read.
	UpgradeNotAcknowledgedReason = "NotAcknowledged"

	// UpgradeNotUpgradeableReason: the cluster says that it cannot be upgraded to the next minor version now; the message repeats why.
	UpgradeNotUpgradeableReason = "NotUpgradeable"

	// UpgradeRequestedReason: the version operator was asked for the release, and has not answered yet.
	UpgradeRequestedReason = "Requested"

	// UpgradeReleaseNotAcceptedReason: the version operator does not accept the release; the message repeats why.
	UpgradeReleaseNotAcceptedReason = "ReleaseNotAccepted"

	// UpgradeInProgressReason: the cluster is being upgraded.
	UpgradeInProgressReason = "InProgress"

	// UpgradeStalledReason: the upgrade has not come forward for long; the message names the operator that it waits for, or the
	// MachineConfigPool that is paused.
	UpgradeStalledReason = "Stalled"

	// UpgradeFailingReason: the upgrade does not succeed; the message names the operator. It goes on by itself when the cause is mended.
	UpgradeFailingReason = "Failing"

	// UpgradeInterruptedReason: the cluster was upgraded to the release before, and has left it; or it was asked for it, and the request was
	// withdrawn or replaced in its ClusterVersion. It is not asked for it again before the annotation
	// controlplane.cluster.x-k8s.io/retry-upgrade is set.
	UpgradeInterruptedReason = "Interrupted"

	// UpgradeRefusedReason: the API server of the cluster refuses the request for the release; the message says why.
	UpgradeRefusedReason = "RequestRefused"

	// UpgradeOtherClusterReason, of Unknown: another cluster answers through <cluster>-kubeconfig than the one that was installed. Nothing is
	// known of the release, and nothing is written.
	UpgradeOtherClusterReason = "OtherCluster"
)
