// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Names on objects that users and operators see. Their meaning never changes within an API version.
const (
	// ConfigFinalizer keeps an OpenshiftAssistedConfig until its Agent is gone and it has left its InfraEnv.
	ConfigFinalizer = "openshiftassistedconfig.bootstrap.cluster.x-k8s.io"

	// InfraEnvAnnotation, on a config, records the InfraEnv chosen at first use. It wins over recomputation (DESIGN D5).
	InfraEnvAnnotation = "bootstrap.cluster.x-k8s.io/infra-env"

	// InfraEnvUIDAnnotation, on a bootstrap data Secret of boot mode UserData, is the UID of the InfraEnv whose discovery ignition is in it.
	// A host cannot register with the ignition of an InfraEnv that is gone, also when another one of its name has been made since.
	InfraEnvUIDAnnotation = "bootstrap.cluster.x-k8s.io/infra-env-uid"

	// OSImageVersionAnnotation, on a config, records the version of the OS image that was chosen with the InfraEnv, as a minor version such as
	// 4.21, because the cluster runs that release (DESIGN D32). It is absent when spec.boot.osImageVersion decides, and when the InfraEnv has
	// the service's default. A cluster that is upgraded later does not change it.
	OSImageVersionAnnotation = "bootstrap.cluster.x-k8s.io/os-image-version"

	// TraceAnnotation, on a config, is the first traced pass of its Machine, in the format of W3C's header traceparent. Every later pass is
	// linked to it. It is written with what is written anyway, and only when the manager sends traces (docs/guides/tracing.md). Whoever sets
	// it before has the passes linked to a span of their own.
	TraceAnnotation = "bootstrap.cluster.x-k8s.io/traceparent"

	// AgentAnnotation, on a config, records the name of the Agent that was recognised as the Machine's host (DESIGN D6). It is written before
	// the Agent is claimed, or deleted as one of an earlier life of the host: a recorded Agent that is gone has left a host that waits for a
	// reboot.
	AgentAnnotation = "bootstrap.cluster.x-k8s.io/agent"

	// ClaimAnnotation, on an Agent, records the Machine that the Agent was claimed for, as <machine name>/<machine UID> (DESIGN D6).
	ClaimAnnotation = "bootstrap.cluster.x-k8s.io/claimed-by"

	// VouchedAgentAnnotation, on a BareMetalHost, is the name of the Agent that is this host: somebody who knows the hardware vouches for it.
	// That Agent is recognised whatever addresses and serial number it reports, no other Agent is recognised as this host, and the Agent as no
	// other host. It is claimed under the same conditions as others: the host is provisioned, the Agent registered since, and no other living
	// Machine has it.
	VouchedAgentAnnotation = "bootstrap.cluster.x-k8s.io/vouched-agent"

	// BindNudgeAnnotation, on an Agent, holds <UID of the AgentClusterInstall>/<its phase>, while it takes hosts. Changing it makes
	// assisted-service try again a bind that it refused while an installation was starting (ASSISTED 8.4).
	BindNudgeAnnotation = "bootstrap.cluster.x-k8s.io/bind-nudge"

	// InstallationDiskAnnotation, on a bound Agent, holds the ID of the disk that the root device hints chose; it is absent without hints. The
	// Agent is approved together with that disk, once the bound host has reported its disks (docs/adr/0003-installation-disk.md). On a config
	// it holds the same, or InstallationDiskDefault; from then on the config's hints cannot be changed.
	InstallationDiskAnnotation = "bootstrap.cluster.x-k8s.io/installation-disk"

	// InstallationDiskDefault is the value of InstallationDiskAnnotation on a config without root device hints.
	InstallationDiskDefault = "chosen-by-assisted-service"

	// ArbiterLabel, on a Machine, says that its host is the arbiter of a control plane of two hosts (spec.install.twoNode: Arbiter). Cluster
	// API puts it on the Node, as it does with every label of its prefix.
	ArbiterLabel = "node-role.kubernetes.io/arbiter"

	// FencingCredentialsAnnotation, on a BareMetalHost, names the Secret of its namespace by which the host is powered off, in a control plane
	// of two hosts with fencing: keys address, username, password and optionally certificateVerification. It is the annotation that
	// assisted-service reads itself from BareMetalHosts that it boots (ASSISTED 1.6).
	FencingCredentialsAnnotation = "bmac.agent-install.openshift.io/fencing-credentials-secret-name" //nolint:gosec // It is a name.

	// TrustBundleKey is the key of the certificates in the ConfigMap that spec.additionalTrustBundleRef names, as OpenShift has it.
	TrustBundleKey = "ca-bundle.crt"

	// RecognitionAnnotation, on an unclaimed Agent of an InfraEnv made by this provider, says why no host is recognised in it.
	RecognitionAnnotation = "bootstrap.cluster.x-k8s.io/not-recognized"

	// AgentDeletionHook is the pre-terminate hook on a Machine that keeps its host from being freed while its Agent exists (DESIGN D19).
	AgentDeletionHook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/openshift-assisted-agent"

	// AgentDeletionHookOwner is the value of AgentDeletionHook.
	AgentDeletionHookOwner = "bootstrap-openshift-assisted"

	// PowerCycleAnnotation, on a BareMetalHost, records as JSON for which Machine the bootstrap manager last asked for a power cycle, when,
	// how many times in a row the host was booted by then without registering, and which Agent was lost, if that was the reason. It is
	// written together with that request, so that no host is power-cycled twice for one reason. It goes when the host has registered, and
	// with the Machine.
	PowerCycleAnnotation = "bootstrap.cluster.x-k8s.io/power-cycle"

	// NMStateInfraEnvLabel, on an NMStateConfig made by this provider, is what its InfraEnv selects it by: a hash of the Cluster's UID and the
	// InfraEnv's name, since assisted-service looks for NMStateConfigs in all namespaces. InfraEnvs of the first version select their own
	// name. NMStateConfigs without the label are never changed nor deleted.
	NMStateInfraEnvLabel = "bootstrap.cluster.x-k8s.io/nmstate-infra-env"

	// NMStateHostAnnotation, on such an NMStateConfig, is the name of the BareMetalHost that it is for.
	NMStateHostAnnotation = "bootstrap.cluster.x-k8s.io/nmstate-host"

	// NMStateImageAnnotation, on such an NMStateConfig, is a hash of the InfraEnv's image at the time of the last change: images that are
	// handed out are later ones. Where the image keeps its URL whatever is in it (AUTH_TYPE=none), it is that time, and images are handed out
	// a minute later. It is absent when the InfraEnv had no image then.
	NMStateImageAnnotation = "bootstrap.cluster.x-k8s.io/nmstate-newer-than-image"

	// InfraEnvClusterLabel, on an InfraEnv made by this provider, holds the name of the Cluster whose hosts use it. InfraEnvs without
	// the label are never changed nor deleted (DESIGN D13).
	InfraEnvClusterLabel = "bootstrap.cluster.x-k8s.io/infra-env-of"
)

// DataSecretAvailableCondition is True when the bootstrap data Secret exists and its name is published (CONTRACT BOOT-25, BOOT-32).
const (
	DataSecretAvailableCondition = "DataSecretAvailable"

	// DataSecretAvailableReason: the Secret exists and its name is in status.dataSecretName.
	DataSecretAvailableReason = "Available"

	// WaitingForClusterInfrastructureReason: Cluster.status.initialization.infrastructureProvisioned is not true yet.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructureReady"

	// WaitingForDiscoveryImageReason: the InfraEnv has no image yet; see DiscoveryImageReady. Or the infrastructure machine named a host
	// before it had the image; the message says what to do.
	WaitingForDiscoveryImageReason = "WaitingForDiscoveryImage"

	// WaitingForInfraMachineReason: the Machine's infrastructure machine does not exist yet, so the image cannot be handed to it.
	WaitingForInfraMachineReason = "WaitingForInfrastructureMachine"

	// WaitingForDeletionHookReason: the Machine does not carry the pre-terminate hook yet (DESIGN D19).
	WaitingForDeletionHookReason = "WaitingForDeletionHook"

	// InfraMachineNotSupportedReason: the infrastructure machine is no Metal3Machine, and the config asks for what only Metal3 has: a live
	// ISO, the identity of a BareMetalHost, or its name or network data.
	InfraMachineNotSupportedReason = "InfrastructureMachineNotSupported"

	// MachinePoolNotSupportedReason: a MachinePool owns the config. Use a MachineDeployment: every host is let in for a Machine of its own.
	MachinePoolNotSupportedReason = "MachinePoolNotSupported"

	// BootModeMismatchReason: spec.boot.mode is UserData and the image of the infrastructure machine is a live ISO, which no user data
	// reaches.
	BootModeMismatchReason = "BootModeMismatch"

	// WaitingForDiscoveryIgnitionReason: with spec.boot.mode UserData, everything is ready but the discovery ignition, which is being fetched.
	WaitingForDiscoveryIgnitionReason = "WaitingForDiscoveryIgnition"

	// DiscoveryIgnitionUnreachableReason: the server of the discovery ignition did not answer, or with an error; it is asked again.
	DiscoveryIgnitionUnreachableReason = "DiscoveryIgnitionUnreachable"

	// DiscoveryIgnitionInvalidReason: assisted-service served something that is no discovery ignition, or that does not fit into a Secret. The
	// provider downloads it again.
	DiscoveryIgnitionInvalidReason = "DiscoveryIgnitionInvalid"

	// ImageURLTooLongReason: no served version of the infrastructure machine takes an image URL of this length (DESIGN D4).
	ImageURLTooLongReason = "ImageURLTooLong"

	// DataSecretConflictReason: a Secret of the config's name exists and belongs to something else.
	DataSecretConflictReason = "SecretConflict"

	// DataSecretRefusedReason: the API server does not take the Secret, for example because of a ResourceQuota; the message says why.
	DataSecretRefusedReason = "SecretRefused"

	// ReadFailedReason: not all that is needed can be read; the message says what, and why. The same is said in HostRecognized until the host
	// is recognised, and in AgentInstalled afterwards, by the controller that lets hosts in.
	ReadFailedReason = "ReadFailed"
)

// DiscoveryImageReadyCondition is True when the config's InfraEnv has an image to boot from (ASSISTED 1.1).
const (
	DiscoveryImageReadyCondition = "DiscoveryImageReady"

	// DiscoveryImageReadyReason: the InfraEnv has an image.
	DiscoveryImageReadyReason = "Ready"

	// DiscoveryImageNotNeededReason: the Machine's host was booted before, here or where the Machine was moved from (CONTRACT BOOT-34).
	DiscoveryImageNotNeededReason = "NotNeeded"

	// WaitingForCRDsReason: kinds of assisted-service, hive or Metal3 are not served by the API server yet; the message names them.
	WaitingForCRDsReason = "WaitingForCRDs"

	// MachineDeletingReason: the Machine is being deleted and had no InfraEnv yet; none is made for it.
	MachineDeletingReason = "MachineDeleting"

	// ClusterDeletingReason: the Cluster is being deleted and the Machine had no InfraEnv yet; none is made for it.
	ClusterDeletingReason = "ClusterDeleting"

	// WaitingForPullSecretReason: neither the config nor the cluster's ClusterDeployment names a pull secret.
	WaitingForPullSecretReason = "WaitingForPullSecret"

	// WaitingForTrustBundleReason: the ConfigMap that spec.additionalTrustBundleRef names does not exist.
	WaitingForTrustBundleReason = "WaitingForTrustBundle"

	// TrustBundleInvalidReason: that ConfigMap has no key ca-bundle.crt, or what is in it is no bundle of certificates.
	TrustBundleInvalidReason = "TrustBundleInvalid"

	// InfraEnvNotSupportedReason: the installed assisted-service is older than fields that the config sets; the message names them.
	InfraEnvNotSupportedReason = "InfraEnvNotSupported"

	// InfraEnvPendingReason: assisted-service has not made the image yet, or the infrastructure machine does not have it yet.
	InfraEnvPendingReason = "InfraEnvPending"

	// NetworkDataMissingReason: spec.staticNetworking asks for the network data of BareMetalHosts, and the Secret of one that may be chosen
	// does not exist; the message names both. It is looked for again every minute.
	NetworkDataMissingReason = "NetworkDataMissing"

	// NetworkDataInvalidReason: the network data of a BareMetalHost that may be chosen cannot be used; the message names host and Secret, and
	// says why.
	NetworkDataInvalidReason = "NetworkDataInvalid"

	// NetworkDataPendingReason: NMStateConfigs are being made of the hosts' network data, or assisted-service has not put them into the image.
	NetworkDataPendingReason = "NetworkDataPending"

	// InfraEnvFailedReason: assisted-service refused the InfraEnv, and the message is its own; or the API server or a webhook did, and the
	// message says who and for which fields.
	InfraEnvFailedReason = "InfraEnvFailed"

	// InfraEnvConflictReason: an InfraEnv of the computed name exists and was not made by this provider for this Cluster.
	InfraEnvConflictReason = "InfraEnvConflict"

	// InfraEnvDeletingReason: the recorded InfraEnv is being deleted; it is made anew when it is gone.
	InfraEnvDeletingReason = "InfraEnvDeleting"
)

// HostHealthyCondition is False while the BareMetalHost of the Machine reports an error, and while Metal3 finds no BareMetalHost for the
// Machine (DESIGN D21, METAL3 M3-11, M3-61).
const (
	HostHealthyCondition = "HostHealthy"

	// HostHealthyReason: the BareMetalHost reports no error.
	HostHealthyReason = "Healthy"

	// HostNotAssociatedReason: no BareMetalHost was chosen for the Machine yet.
	HostNotAssociatedReason = "NotAssociated"

	// NoHostAvailableReason: Metal3 has tried to choose a BareMetalHost for the Machine and could not; the message says why (METAL3 M3-11).
	NoHostAvailableReason = "NoHostAvailable"

	// HostErrorReason: the BareMetalHost reports an error; the message names the host, the kind of error and its text. Of a Machine that is
	// being deleted it says what to do when the error keeps the host from being freed.
	HostErrorReason = "HostError"

	// HostMissingReason: the BareMetalHost that the Machine consumed does not exist any more.
	HostMissingReason = "HostMissing"
)

// HostRecognizedCondition is True when exactly one Agent was recognised as the Machine's host and claimed for it (DESIGN D6).
const (
	HostRecognizedCondition = "HostRecognized"

	// HostRecognizedReason: the Agent is claimed.
	HostRecognizedReason = "Recognized"

	// NodeJoinedReason: the Machine has a Node and no Agent, because it was moved from another management cluster or its Agent was deleted
	// since. Nothing is recognised for it any more. A reason of AgentInstalled too, also while the Agent of such a Machine is not bound to the
	// cluster: a host that has joined is never bound nor approved again, which would write its disk.
	NodeJoinedReason = "NodeJoined"

	// WaitingForHostReason: no BareMetalHost is associated or provisioned yet. A reason of AgentInstalled too, while the Agent of a Machine of
	// Metal3 waits to be bound and the BareMetalHost is gone: its Node could not be found.
	WaitingForHostReason = "WaitingForHost"

	// WaitingForAgentReason: the host was booted, and no Agent that may be its own has registered and sent its inventory yet; the
	// message says when the host is power-cycled or given up. It stays until assisted-service has examined the host that has registered, or
	// its Agent is two minutes old.
	WaitingForAgentReason = "WaitingForAgent"

	// HostNeverRegisteredReason: the host has not registered in the time that spec.install.hostRegistrationTimeoutSeconds of the control plane
	// gives it, nor in the same time after a power cycle. Nothing is tried again by itself; a host that registers all the same is let in.
	HostNeverRegisteredReason = "HostNeverRegistered"

	// ClaimingAgentReason: an Agent was recognised as the Machine's host, and is not claimed yet: the Machine has no pre-terminate hook yet,
	// or assisted-service has not examined the host. In the second case, a condition that says WaitingForAgent keeps saying it until the Agent
	// is two minutes old.
	ClaimingAgentReason = "Claiming"

	// AgentNotRecognizedReason: Agents registered, but the inventory of none matches the BareMetalHost.
	AgentNotRecognizedReason = "AgentNotRecognized"

	// SeveralAgentsReason: more than one Agent matches the BareMetalHost. None is approved; what a claimed one was given is taken back, unless
	// its installation has begun.
	SeveralAgentsReason = "SeveralAgentsMatch"

	// SeveralHostsReason: the Agent's inventory matches more than one BareMetalHost; it is not approved.
	SeveralHostsReason = "SeveralHostsMatch"

	// DuplicateSerialNumberReason: two hosts register as one Agent, or have one serial number and have not registered as two Agents (ASSISTED
	// fact 9).
	DuplicateSerialNumberReason = "DuplicateSerialNumber"

	// AgentClaimedByOtherReason: the Agent is claimed for another living Machine.
	AgentClaimedByOtherReason = "AgentClaimedByOther"

	// AgentLostReason: the claimed Agent was deleted before the Machine had its Node. A host whose installation has not begun is rebooted to
	// register again; any other is not rebooted, and waits for its Node.
	AgentLostReason = "AgentLost"

	// WaitingForHostReleaseReason: the Machine is being deleted, its Agent is gone, and the BareMetalHost is not freed; HostHealthy says why.
	WaitingForHostReleaseReason = "WaitingForHostRelease"
)

// AgentInstalledCondition is True when the Machine's host runs the installed system.
const (
	AgentInstalledCondition = "AgentInstalled"

	// AgentInstalledReason: the installation of the host is complete.
	AgentInstalledReason = "Installed"

	// WaitingForRecognitionReason: there is no claimed Agent yet; see HostRecognized.
	WaitingForRecognitionReason = "WaitingForRecognition"

	// AgentDiscoveringReason: the Agent is collecting its inventory and is not ready to be bound.
	AgentDiscoveringReason = "Discovering"

	// HostnameInvalidReason: the BareMetalHost's name, which spec.nodeRegistration.name chooses for the Node, is no hostname (DESIGN D7).
	HostnameInvalidReason = "HostnameInvalid"

	// ArchitectureMismatchReason: the host reports another architecture than spec.cpuArchitecture, so it is not bound; the message has both.
	ArchitectureMismatchReason = "ArchitectureMismatch"

	// ArbiterNotTakenReason: the Machine is an arbiter, and its cluster takes none, or none any more.
	ArbiterNotTakenReason = "ArbiterNotTaken"

	// FencingCredentialsMissingReason: the cluster is one of two nodes with fencing, and the BareMetalHost names no Secret with credentials.
	FencingCredentialsMissingReason = "FencingCredentialsMissing"

	// InstallationInvalidReason: spec.installation, which was not checked at admission, is not valid; the message says what.
	InstallationInvalidReason = "InstallationInvalid"

	// InstallationDiskNotFoundReason: no disk of the host meets the root device hints, so it is not bound; the message names hints and disks.
	InstallationDiskNotFoundReason = "InstallationDiskNotFound"

	// InstallationDiskAmbiguousReason: several disks of the host meet root device hints that are meant for one, so it is not bound.
	InstallationDiskAmbiguousReason = "InstallationDiskAmbiguous"

	// InstallationDiskNotEligibleReason: the disks that meet the root device hints cannot be installed on, so the host is not bound; the
	// message says why.
	InstallationDiskNotEligibleReason = "InstallationDiskNotEligible"

	// WaitingForClusterReason: the cluster does not take hosts now: the host joins when it does (DESIGN D8).
	WaitingForClusterReason = "WaitingForCluster"

	// AgentBindingReason: the Agent is being bound to the cluster.
	AgentBindingReason = "Binding"

	// AgentValidationsFailingReason: checks of assisted-service fail; the message names them.
	AgentValidationsFailingReason = "ValidationsFailing"

	// AgentDisconnectedReason: assisted-service has not heard from the host for some time.
	AgentDisconnectedReason = "Disconnected"

	// AgentReadyReason: the host is ready and waits for the installation to begin, or is being prepared for it: its disk is not written yet.
	AgentReadyReason = "ReadyToInstall"

	// AgentPreparationFailedReason: the installation could not be prepared on the host; the message says why. assisted-service tries again
	// until it can.
	AgentPreparationFailedReason = "PreparationFailed"

	// AgentInstallingReason: the installation runs; the stage is in status.progress of the Agent.
	AgentInstallingReason = "Installing"

	// AgentPendingUserActionReason: the host was rebooted to be installed to the end, or is installed, and assisted-service waits for somebody
	// to act on it: it has booted the discovery image again, or nobody has seen it since.
	AgentPendingUserActionReason = "PendingUserAction"

	// AgentNeedsAttentionReason: assisted-service refuses the bind of the host or what it is given, or the API server does.
	AgentNeedsAttentionReason = "NeedsAttention"

	// AgentInstallationFailedReason: the installation of the host failed.
	AgentInstallationFailedReason = "InstallationFailed"
)

// DeletingCondition is True while the config is being deleted.
const (
	DeletingCondition = "Deleting"

	// NotDeletingReason: the config is not being deleted.
	NotDeletingReason = "NotDeleting"

	// WaitingForMachineReason: the Machine lives and needs the InfraEnv; the config goes with it.
	WaitingForMachineReason = "WaitingForMachineDeletion"

	// WaitingForAgentDeletionReason: an Agent that was claimed for the Machine still exists.
	WaitingForAgentDeletionReason = "WaitingForAgentDeletion"

	// WaitingForInfraEnvDeletionReason: the InfraEnv had no other user and is being deleted.
	WaitingForInfraEnvDeletionReason = "WaitingForInfraEnvDeletion"

	// DeletionCompletedReason: nothing is left.
	DeletionCompletedReason = "DeletionCompleted"
)
