// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AvailableCondition is True when the API answers and a quorum of control-plane Nodes is ready (CONTRACT CP-80).
const (
	AvailableCondition = "Available"

	// AvailableReason: the API answers and a quorum of control-plane Nodes is ready.
	AvailableReason = "Available"

	// NotAvailableReason: the cluster is not installed, the quorum of Nodes is lost, or etcd or the API is not available; the message says
	// which.
	NotAvailableReason = "NotAvailable"

	// ConnectionDownReason: the API has not answered for longer than the grace period.
	ConnectionDownReason = "ConnectionDown"

	// OtherClusterReason, of Unknown: Secret <cluster>-kubeconfig leads to another cluster than the one that was installed; the message has
	// both IDs. The conditions of the control plane do not describe the other cluster.
	OtherClusterReason = "OtherCluster"
)

// InitializedCondition is True once the installation was complete and the API answered (CONTRACT CP-50, DESIGN D11).
const (
	InitializedCondition = "Initialized"

	// InitializedReason: the cluster was installed.
	InitializedReason = "Initialized"

	// NotInitializedReason: the cluster was not installed yet.
	NotInitializedReason = "NotInitialized"
)

// InstalledCondition tells the progress of the installation.
const (
	InstalledCondition = "Installed"

	// InstalledReason: the installation is complete.
	InstalledReason = "Installed"

	// WaitingForClusterInfrastructureReason: the Cluster's infrastructure or its control-plane endpoint is not there yet.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructureReady"

	// InvalidControlPlaneEndpointReason: the Cluster's control-plane endpoint is an address that the installed cluster will not answer at.
	InvalidControlPlaneEndpointReason = "InvalidControlPlaneEndpoint"

	// InvalidNetworksReason: the networks of spec.install and of the Cluster cannot be installed together; the message names the fields.
	InvalidNetworksReason = "InvalidNetworks"

	// MixedOwnershipReason: a control-plane Machine of the Cluster is controlled by something else; nothing is changed until it is gone
	// (CONTRACT CP-39).
	MixedOwnershipReason = "MixedOwnership"

	// UnrecordedClusterReason: Machines of the control plane have Nodes, and it knows of no installed cluster. Its annotations are lost, so
	// that an installation would destroy the cluster; nothing is changed until they are restored.
	UnrecordedClusterReason = "UnrecordedCluster"

	// ClusterDeletingReason: the Cluster is being deleted, and nothing is created any more.
	ClusterDeletingReason = "ClusterDeleting"

	// WaitingForCRDsReason: kinds of assisted-service, hive or Metal3 are not served by the API server; the message names them.
	WaitingForCRDsReason = "WaitingForCRDs"

	// WaitingForHostsReason: day 1 is open; the message counts the hosts that are ready (DESIGN D8).
	WaitingForHostsReason = "WaitingForHosts"

	// ValidationsFailingReason: checks of assisted-service on the cluster fail; the message names them.
	ValidationsFailingReason = "ValidationsFailing"

	// SpecNotSyncedReason: assisted-service cannot use what the control plane asks for; the message says why.
	SpecNotSyncedReason = "SpecNotSynced"

	// InstallRefusedReason: the API server or a webhook refuses an object of the installation (ClusterImageSet, ClusterDeployment,
	// AgentClusterInstall), a change or deletion of one, a change of an Agent by which the installation would begin, a record of it on the
	// control plane, or the adoption of a Machine, or the AgentClusterInstall cannot be made; the message says why.
	InstallRefusedReason = "InstallRefused"

	// RequirementsNotMetReason: nothing is held and assisted-service does not begin; the message repeats what it waits for, and names Agents
	// of other namespaces that are bound to the cluster.
	RequirementsNotMetReason = "RequirementsNotMet"

	// PreparationFailedReason: assisted-service could not prepare the installation and tries again until it can; the message names the host,
	// or says what could not be made. spec.install may be changed meanwhile.
	PreparationFailedReason = "PreparationFailed"

	// InstallationOnHoldReason: all that is needed is there, and spec.install.holdInstallation keeps the installation from beginning.
	InstallationOnHoldReason = "InstallationOnHold"

	// PreparingReason: assisted-service prepares the installation.
	PreparingReason = "Preparing"

	// InstallingReason: hosts are being installed.
	InstallingReason = "Installing"

	// FinalizingReason: the cluster's operators are being installed.
	FinalizingReason = "Finalizing"

	// InstallationFailedReason: the installation failed; the message names the first host and its reason, or that of the cluster, how to
	// retry, and, with spec.install.retries, why no attempt begins by itself.
	InstallationFailedReason = "InstallationFailed"

	// RetryWaitingReason: the installation failed, or its ClusterDeployment or AgentClusterInstall vanished, and the next attempt begins by
	// itself at the time that the message and status.install.nextRetryTime have (DESIGN D35).
	RetryWaitingReason = "RetryWaiting"

	// RetriesExhaustedReason: the installation failed, or its ClusterDeployment or AgentClusterInstall vanished, and the attempts that
	// begin by themselves are used up; the message says why the last one ended, and how to retry.
	RetriesExhaustedReason = "RetriesExhausted"

	// RetryingReason: an installation that failed, or whose ClusterDeployment or AgentClusterInstall vanished, is being cleaned up before the
	// next attempt.
	RetryingReason = "Retrying"

	// ImportingReason: the cluster was installed before the control plane was moved or restored; it becomes Installed when its API answers
	// through <cluster>-kubeconfig. Nothing is installed meanwhile (DESIGN D22).
	ImportingReason = "Importing"

	// ClusterMismatchReason: <cluster>-kubeconfig leads to another cluster than the one that was installed; the message has both IDs.
	ClusterMismatchReason = "ClusterMismatch"

	// NameConflictReason: an object of the name that the control plane needs exists and belongs to something else, or another Cluster needs it
	// too.
	NameConflictReason = "NameConflict"

	// ReadFailedReason: not all that is needed can be read; the message says what, and why. Of a cluster that is installed, Available has the
	// message, and Deleting of a control plane that is being deleted.
	ReadFailedReason = "ReadFailed"
)

// InstallationMatchesSpecCondition is False when the cluster is, or was, installed from other fields than the control plane has now.
const (
	InstallationMatchesSpecCondition = "InstallationMatchesSpec"

	// InstallationMatchesReason: the cluster is installed from the fields that the control plane has now.
	InstallationMatchesReason = "Match"

	// ChangedTooLateReason: spec.install, or another field that the cluster is installed from, was changed after the installation had begun.
	ChangedTooLateReason = "ChangedTooLate"
)

// Phases of status.install.phase.
const (
	// InstallPhaseWaitingForHosts: day 1 is open.
	InstallPhaseWaitingForHosts = "WaitingForHosts"

	// InstallPhasePreparing: the installation is being prepared.
	InstallPhasePreparing = "Preparing"

	// InstallPhaseInstalling: hosts are being installed.
	InstallPhaseInstalling = "Installing"

	// InstallPhaseFinalizing: the cluster's operators are being installed.
	InstallPhaseFinalizing = "Finalizing"

	// InstallPhaseCompleted: the cluster is installed.
	InstallPhaseCompleted = "Completed"

	// InstallPhaseFailed: the installation failed.
	InstallPhaseFailed = "Failed"
)

// KubeconfigAvailableCondition is True when the Secret <cluster>-kubeconfig is published (CONTRACT CP-52). Of an installed cluster, the
// message says which credential it holds: a token, with the end of its life, or the installer's, with the reason.
const (
	KubeconfigAvailableCondition = "KubeconfigAvailable"

	// KubeconfigAvailableReason: the Secret is published.
	KubeconfigAvailableReason = "Available"

	// KubeconfigNotAvailableReason: assisted-service has not published the cluster's credentials yet, or they cannot be used: the installed
	// cluster refuses them, or its certificate does not verify. The message says which certificate was seen.
	KubeconfigNotAvailableReason = "NotAvailable"

	// KubeconfigUserProvidedReason: the Secret belongs to somebody else and is left alone (CONTRACT CP-55). The condition is False when nobody
	// can connect with it; the message says why.
	KubeconfigUserProvidedReason = "UserProvided"

	// KubeconfigNameConflictReason: another Cluster or control plane of the namespace uses the same Secret; the message names both.
	KubeconfigNameConflictReason = "NameConflict"
)

// VersionsMatchCondition is False when spec.version is not what the release or the first Node runs, when the Node of a worker does not run
// the version of its Machine, or when the release is not for the architecture of a host; the message has the value to set, and where
// (DESIGN D9).
const (
	VersionsMatchCondition = "VersionsMatch"

	// VersionsMatchReason: spec.version is the version that the Nodes run.
	VersionsMatchReason = "Match"

	// VersionMismatchReason: the release or a Node has another version than spec.version or, for a worker, than its Machine.
	VersionMismatchReason = "Mismatch"

	// ArchitectureNotInReleaseReason: the release image is not for the architecture that a host is to have.
	ArchitectureNotInReleaseReason = "ArchitectureNotInRelease"

	// VersionUnknownReason: no Node has reported its version yet.
	VersionUnknownReason = "Unknown"
)

// ReleaseResolvedCondition is True once the digest and the Kubernetes version of the release image are in status.release. Nothing waits for
// it (DESIGN D10).
const (
	ReleaseResolvedCondition = "ReleaseResolved"

	// ReleaseResolvedReason: status.release tells what the image is.
	ReleaseResolvedReason = "Resolved"

	// ReleaseNotResolvedReason: the registry could not be asked, or the image is no release; the message says why. It is tried again.
	ReleaseNotResolvedReason = "NotResolved"

	// ReleaseResolvingReason: the registry is being asked, or will be: the message says what keeps it from being asked.
	ReleaseResolvingReason = "Resolving"

	// ReleaseResolutionSkippedReason: nothing is resolved, because the release is a ClusterImageSet or the manager runs with
	// --resolve-releases=false.
	ReleaseResolutionSkippedReason = "Skipped"
)
