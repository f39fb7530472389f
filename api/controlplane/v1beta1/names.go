// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Names on objects that users and operators see. Their meaning never changes within an API version.
const (
	// ControlPlaneFinalizer keeps an OpenshiftAssistedControlPlane until all that it made is gone (DESIGN D12).
	ControlPlaneFinalizer = "openshiftassistedcontrolplane.controlplane.cluster.x-k8s.io"

	// RetryInstallationAnnotation, set by the user on a control plane whose installation failed, starts the installation anew (DESIGN D18).
	// Its value does not matter; it is removed when the retry begins.
	RetryInstallationAnnotation = "controlplane.cluster.x-k8s.io/retry-installation"

	// InstallAttemptAnnotation counts the installations of a control plane, from 1. On the control plane it is the wanted attempt; on
	// Machines, the ClusterDeployment and the AgentClusterInstall it is the attempt that they were made for.
	InstallAttemptAnnotation = "controlplane.cluster.x-k8s.io/install-attempt"

	// InstallationStartedAnnotation records on a control plane, as JSON, for which attempt the hold of the installation was cleared, for which
	// control plane, and which worker Machines take part. A ClusterDeployment or AgentClusterInstall that vanishes from then on, and before
	// the cluster is installed, is not made anew: its hosts are in any state, and the next attempt begins (DESIGN D18).
	InstallationStartedAnnotation = "controlplane.cluster.x-k8s.io/installation-started"

	// LostInstallationsAnnotation records on a control plane, as JSON, how many attempts have begun by themselves because a ClusterDeployment
	// or AgentClusterInstall vanished, and when the last one did. Their number is limited, and each waits longer than the one before. It is
	// removed when the user asks for an attempt.
	LostInstallationsAnnotation = "controlplane.cluster.x-k8s.io/lost-installations"

	// InstalledClusterAnnotation records on a control plane, as JSON, which cluster was installed for it: the attempt, the ID of the OpenShift
	// cluster and the ID under which assisted-service installed it. It outlives a move to another management cluster, where nothing is
	// installed for a control plane that has it: its cluster is imported (DESIGN D22).
	InstalledClusterAnnotation = "controlplane.cluster.x-k8s.io/installed-cluster"

	// NextMachineAnnotation, on a control plane whose cluster is installed, is the number in the name of the next Machine. No number is used
	// twice: etcd knows its members by the names of their Nodes, and may still count the one of a Machine that is gone.
	NextMachineAnnotation = "controlplane.cluster.x-k8s.io/next-machine"

	// TemplateKeysAnnotation, on Machines and the objects that they refer to, lists the keys of labels and annotations that came from
	// machineTemplate.metadata, as JSON, so that a key removed there is removed here and keys of others stay (CONTRACT CP-40).
	TemplateKeysAnnotation = "controlplane.cluster.x-k8s.io/template-keys"

	// InfrastructureRoleLabel, on a ClusterRole with value "true", adds its rules to what the control plane manager may do: the machines and
	// machine templates of an infrastructure provider other than Metal3 (docs/guides/other-infrastructure.md).
	InfrastructureRoleLabel = "controlplane.cluster.x-k8s.io/aggregate-to-openshift-assisted"

	// OwnerNamespaceLabel, on objects of hive and assisted-service, holds the namespace of the control plane that they were made for. They
	// have no owner reference: garbage collection would delete them in an order that harms the installed cluster (docs/adr/0002).
	OwnerNamespaceLabel = "controlplane.cluster.x-k8s.io/owner-namespace"

	// OwnerNameLabel, on the same objects, holds the name of the control plane that they were made for, hashed past 63 characters.
	OwnerNameLabel = "controlplane.cluster.x-k8s.io/owner-name"

	// OwnerUIDLabel, on the same objects, holds the UID of the control plane that they were made for (DESIGN D13).
	OwnerUIDLabel = "controlplane.cluster.x-k8s.io/owner-uid"
)

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

	// InstallRefusedReason: the API server or a webhook of assisted-service refuses the AgentClusterInstall, a change of it or of an Agent by
	// which the installation would begin, or it cannot be made; the message says why.
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

	// InstallationFailedReason: the installation failed; the message names the first host and its reason, and how to retry.
	InstallationFailedReason = "InstallationFailed"

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

	// InstallationMatchesReason: the cluster is installed as it is asked for.
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

// KubeconfigAvailableCondition is True when the Secret <cluster>-kubeconfig is published (CONTRACT CP-52).
const (
	KubeconfigAvailableCondition = "KubeconfigAvailable"

	// KubeconfigAvailableReason: the Secret is published.
	KubeconfigAvailableReason = "Available"

	// KubeconfigNotAvailableReason: assisted-service has not published the cluster's credentials yet, or they cannot be used.
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

	// VersionMismatchReason: the release or a Node has another version than was asked for.
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

// EtcdClusterHealthyCondition sums up the ClusterOperator etcd of the installed cluster (CONTRACT CP-82).
const (
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// EtcdClusterHealthyReason: every member of etcd is healthy.
	EtcdClusterHealthyReason = "Healthy"

	// EtcdClusterNotHealthyReason: etcd is not available or degraded; the message says why.
	EtcdClusterNotHealthyReason = "NotHealthy"

	// EtcdClusterHealthUnknownReason: the ClusterOperator does not exist or has not reported yet.
	EtcdClusterHealthUnknownReason = "HealthUnknown"

	// EtcdClusterInspectionFailedReason: the cluster is not initialized yet, or its ClusterOperators cannot be read.
	EtcdClusterInspectionFailedReason = "InspectionFailed"

	// EtcdClusterConnectionDownReason: the API has not answered for longer than the grace period.
	EtcdClusterConnectionDownReason = "ConnectionDown"
)

// ControlPlaneComponentsHealthyCondition sums up the ClusterOperators kube-apiserver, kube-controller-manager and kube-scheduler of the
// installed cluster (CONTRACT CP-82).
const (
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// ControlPlaneComponentsHealthyReason: every component is healthy.
	ControlPlaneComponentsHealthyReason = "Healthy"

	// ControlPlaneComponentsNotHealthyReason: a component is not available or degraded; the message says which and why.
	ControlPlaneComponentsNotHealthyReason = "NotHealthy"

	// ControlPlaneComponentsHealthUnknownReason: a ClusterOperator does not exist or has not reported yet.
	ControlPlaneComponentsHealthUnknownReason = "HealthUnknown"

	// ControlPlaneComponentsInspectionFailedReason: the cluster is not initialized yet, or its ClusterOperators cannot be read.
	ControlPlaneComponentsInspectionFailedReason = "InspectionFailed"

	// ControlPlaneComponentsConnectionDownReason: the API has not answered for longer than the grace period.
	ControlPlaneComponentsConnectionDownReason = "ConnectionDown"
)

// MachinesReadyCondition aggregates the Ready conditions of the control-plane Machines (CONTRACT CP-82).
const (
	MachinesReadyCondition = "MachinesReady"

	// MachinesReadyReason: every Machine is ready.
	MachinesReadyReason = "Ready"

	// MachinesNotReadyReason: a Machine is not ready; the message says which and why.
	MachinesNotReadyReason = "NotReady"

	// MachinesReadyUnknownReason: it is not known of a Machine whether it is ready.
	MachinesReadyUnknownReason = "ReadyUnknown"

	// MachinesReadyNoReplicasReason: there are no control-plane Machines.
	MachinesReadyNoReplicasReason = "NoReplicas"

	// MachinesReadyInternalErrorReason: the conditions of the Machines cannot be aggregated; the message says why.
	MachinesReadyInternalErrorReason = "InternalError"
)

// MachinesUpToDateCondition aggregates the UpToDate conditions of the control-plane Machines (CONTRACT CP-82).
const (
	MachinesUpToDateCondition = "MachinesUpToDate"

	// MachinesUpToDateReason: every Machine is what the control plane asks for.
	MachinesUpToDateReason = "UpToDate"

	// MachinesNotUpToDateReason: a Machine differs from what the control plane asks for; the message says which and how.
	MachinesNotUpToDateReason = "NotUpToDate"

	// MachinesUpToDateUnknownReason: it is not known of a Machine whether it is up to date.
	MachinesUpToDateUnknownReason = "UpToDateUnknown"

	// MachinesUpToDateNoReplicasReason: there are no control-plane Machines that were checked.
	MachinesUpToDateNoReplicasReason = "NoReplicas"

	// MachinesUpToDateInternalErrorReason: the conditions of the Machines cannot be aggregated; the message says why.
	MachinesUpToDateInternalErrorReason = "InternalError"
)

// RollingOutCondition is True while Machines are not up to date (CONTRACT CP-81).
const (
	RollingOutCondition = "RollingOut"

	// RollingOutReason: at least one Machine is not up to date.
	RollingOutReason = "RollingOut"

	// NotRollingOutReason: every Machine is up to date.
	NotRollingOutReason = "NotRollingOut"
)

// ScalingUpCondition is True while there are fewer Machines than replicas (CONTRACT CP-81).
const (
	ScalingUpCondition = "ScalingUp"

	// ScalingUpReason: there are fewer Machines than replicas.
	ScalingUpReason = "ScalingUp"

	// NotScalingUpReason: there are enough Machines.
	NotScalingUpReason = "NotScalingUp"
)

// ScalingDownCondition is True while there are more Machines than replicas (CONTRACT CP-81).
const (
	ScalingDownCondition = "ScalingDown"

	// ScalingDownReason: there are more Machines than replicas.
	ScalingDownReason = "ScalingDown"

	// NotScalingDownReason: there are not too many Machines.
	NotScalingDownReason = "NotScalingDown"
)

// RemediatingCondition tells of Machines that a MachineHealthCheck found unhealthy (CONTRACT CP-82). It is never True: this provider does
// not replace Machines yet.
const (
	RemediatingCondition = "Remediating"

	// NotRemediatingReason: no Machine is being replaced; the message names those that are unhealthy.
	NotRemediatingReason = "NotRemediating"
)

// DeletingCondition is True while the control plane is being deleted (CONTRACT CP-62, DESIGN D12).
const (
	DeletingCondition = "Deleting"

	// NotDeletingReason: the control plane is not being deleted.
	NotDeletingReason = "NotDeleting"

	// WaitingForWorkersDeletionReason: worker Machines exist.
	WaitingForWorkersDeletionReason = "WaitingForWorkersDeletion"

	// WaitingForMachineDeletionReason: control-plane Machines exist.
	WaitingForMachineDeletionReason = "WaitingForMachineDeletion"

	// WaitingForOrphanedMachinesReason: control-plane Machines that were orphaned on purpose exist, and their hosts are bound to the
	// ClusterDeployment, which stays until these Machines are deleted.
	WaitingForOrphanedMachinesReason = "WaitingForOrphanedMachines"

	// WaitingForInstallDeletionReason: the ClusterDeployment, the AgentClusterInstall or the ClusterImageSet exists.
	WaitingForInstallDeletionReason = "WaitingForInstallDeletion"

	// DeletionCompletedReason: nothing is left.
	DeletionCompletedReason = "DeletionCompleted"
)

// Reasons of the condition UpToDate that the control plane provider sets on its Machines (CONTRACT CP-45).
const (
	// MachineUpToDateReason: the Machine is what the control plane asks for.
	MachineUpToDateReason = "UpToDate"

	// MachineNotUpToDateReason: the Machine differs from what the control plane asks for; the message lists how.
	MachineNotUpToDateReason = "NotUpToDate"
)

// Reasons of the events that the control plane manager records.
const (
	// EventMachineCreated: a control-plane Machine was created.
	EventMachineCreated = "MachineCreated"

	// EventMachineAdopted: the control plane took over a control-plane Machine of its Cluster that nobody controlled.
	EventMachineAdopted = "MachineAdopted"

	// EventInstallObjectsCreated: ClusterDeployment and AgentClusterInstall were created.
	EventInstallObjectsCreated = "InstallObjectsCreated"

	// EventInstallChanged: the AgentClusterInstall was changed because the control plane was, before the installation began.
	EventInstallChanged = "InstallChanged"

	// EventDayOneClosed: the set of hosts of the first installation was fixed.
	EventDayOneClosed = "DayOneClosed"

	// EventInstallationStarted: the hold was cleared.
	EventInstallationStarted = "InstallationStarted"

	// EventHostUnbound: a host that was not ready was left out of the first installation.
	EventHostUnbound = "HostUnbound"

	// EventInstallationFailed: the installation failed.
	EventInstallationFailed = "InstallationFailed"

	// EventMachineDeleted: a surplus control-plane Machine, or one of an earlier attempt, was deleted.
	EventMachineDeleted = "MachineDeleted"

	// EventDayOneReopened: a control-plane host of the first installation was lost before it began, and hosts are waited for again.
	EventDayOneReopened = "DayOneReopened"

	// EventRetryStarted: the next attempt of the installation was asked for.
	EventRetryStarted = "InstallationRetryStarted"

	// EventInstallObjectsLost: the ClusterDeployment or the AgentClusterInstall vanished after the installation had begun, and the next
	// attempt was asked for.
	EventInstallObjectsLost = "InstallObjectsLost"

	// EventKubeconfigPublished: the Secret <cluster>-kubeconfig was written.
	EventKubeconfigPublished = "KubeconfigPublished"

	// EventClusterImported: an installed cluster was made known to the assisted-service of this management cluster.
	EventClusterImported = "ClusterImported"

	// EventLeftoversDeleted: a ClusterDeployment was deleted, because its control plane does not exist any more.
	EventLeftoversDeleted = "LeftoversDeleted"

	// EventServingCertificateNotApproved: a kubelet in the installed cluster, or something else, asks for a serving certificate that is not
	// its own; the request is left alone.
	EventServingCertificateNotApproved = "ServingCertificateNotApproved"

	// EventProviderIDMismatch, of a Machine of infrastructure other than Metal3: its Node has another provider ID, so Cluster API does not
	// find the Node. A provider ID that a Node has cannot be changed.
	EventProviderIDMismatch = "NodeProviderIDMismatch"

	// EventInitialized: the cluster is installed and its API answers.
	EventInitialized = "Initialized"
)
