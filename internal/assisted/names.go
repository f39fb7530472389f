// SPDX-License-Identifier: Apache-2.0

package assisted

import "time"

// Names that assisted-service and hive give meaning to.
const (
	// InfraEnvLabel, on an Agent, is the name of the InfraEnv that the host registered through (ASSISTED 1.2).
	InfraEnvLabel = "infraenvs.agent-install.openshift.io"

	// SkipSpokeCleanupAnnotation, on an Agent, lets it be deleted or unbound without reaching the installed cluster (ASSISTED 1.2, 8.5).
	SkipSpokeCleanupAnnotation = "agent.agent-install.openshift.io/skip-spoke-cleanup"

	// InventoryAnnotation, on an Agent, repeats status.inventory as JSON (ASSISTED 1.2). The managers never read it, and drop it on the way
	// into the cache: it is as large as the status.
	InventoryAnnotation = "agent.agent-install.openshift.io/inventory"
	// ChecksAnnotation, on an Agent, repeats status.validationsInfo as JSON; it is dropped like InventoryAnnotation.
	ChecksAnnotation = "agent.agent-install.openshift.io/validations-info"

	// InstallConfigOverridesAnnotation, on an AgentClusterInstall, is JSON merged into the install-config (ASSISTED 1.3).
	InstallConfigOverridesAnnotation = "agent-install.openshift.io/install-config-overrides"

	// IgnoredClusterValidationsAnnotation and IgnoredHostValidationsAnnotation, on an AgentClusterInstall, are JSON lists of the IDs of checks
	// that may fail (ASSISTED 1.3).
	IgnoredClusterValidationsAnnotation = "agent-install.openshift.io/ignored-cluster-validations"
	// IgnoredHostValidationsAnnotation: see IgnoredClusterValidationsAnnotation.
	IgnoredHostValidationsAnnotation = "agent-install.openshift.io/ignored-host-validations"

	// HiveSecretTypeLabel and HiveSecretTypeKubeconfig select the Secrets of administrators' kubeconfigs (ASSISTED 1.4).
	HiveSecretTypeLabel = "hive.openshift.io/secret-type"
	// HiveSecretTypeKubeconfig: see HiveSecretTypeLabel.
	HiveSecretTypeKubeconfig = "kubeconfig"
	// HiveClusterDeploymentLabel, on such a Secret, is the name of its ClusterDeployment.
	HiveClusterDeploymentLabel = "hive.openshift.io/cluster-deployment-name"

	// KubeconfigKey is the key of the kubeconfig in the Secret <ClusterDeployment>-admin-kubeconfig (ASSISTED 1.4).
	KubeconfigKey = "kubeconfig"
)

// Kinds served by assisted-service's and hive's CRDs, by CRD name. Watches on them start when the CRD is there (DESIGN D15).
const (
	// CRDInfraEnvs is the CRD of InfraEnv.
	CRDInfraEnvs = "infraenvs.agent-install.openshift.io"
	// CRDNMStateConfigs is the CRD of NMStateConfig.
	CRDNMStateConfigs = "nmstateconfigs.agent-install.openshift.io"
	// CRDAgents is the CRD of Agent.
	CRDAgents = "agents.agent-install.openshift.io"
	// CRDAgentServiceConfigs is the CRD of AgentServiceConfig, which is not watched.
	CRDAgentServiceConfigs = "agentserviceconfigs.agent-install.openshift.io"
	// CRDAgentClusterInstalls is the CRD of AgentClusterInstall.
	CRDAgentClusterInstalls = "agentclusterinstalls.extensions.hive.openshift.io"
	// CRDClusterDeployments is the CRD of ClusterDeployment.
	CRDClusterDeployments = "clusterdeployments.hive.openshift.io"
	// CRDClusterImageSets is the CRD of ClusterImageSet.
	CRDClusterImageSets = "clusterimagesets.hive.openshift.io"
)

// Annotations by which the control plane provider tells the bootstrap provider about day 1. They are on the AgentClusterInstall, so that a
// retried installation, which gets a new one, starts with day 1 open (DESIGN D8, D18).
const (
	// DayOneAgentsAnnotation holds the names of the Agents of the first installation, sorted and separated by commas. While it is absent,
	// day 1 is open and recognised hosts may be bound; once it is present the set never changes.
	DayOneAgentsAnnotation = "controlplane.cluster.x-k8s.io/day-one-agents"

	// WorkerWaitStartedAnnotation holds the RFC 3339 time at which all control-plane hosts were ready and the wait for workers began.
	WorkerWaitStartedAnnotation = "controlplane.cluster.x-k8s.io/worker-wait-started"

	// HostRegistrationTimeoutAnnotation holds for how many seconds a host of the cluster may take to register once it was booted; 0 is without
	// limit. DefaultHostRegistrationTimeout holds while it is absent. It follows the control plane at any time, and is here because it
	// concerns the hosts of workers too, and reaches those that wait already.
	HostRegistrationTimeoutAnnotation = "controlplane.cluster.x-k8s.io/host-registration-timeout-seconds"

	// TwoNodeAnnotation holds TwoNodeArbiter or TwoNodeFencing for a control plane of two hosts. It never changes.
	TwoNodeAnnotation = "controlplane.cluster.x-k8s.io/two-node"
	// TwoNodeArbiter: the cluster takes one arbiter, on day 1.
	TwoNodeArbiter = "Arbiter"
	// TwoNodeFencing: control-plane hosts need credentials for fencing.
	TwoNodeFencing = "Fencing"
)

// DefaultHostRegistrationTimeout is how long a host may take to register when the control plane does not say.
const DefaultHostRegistrationTimeout = 30 * time.Minute

// InstallSpecAnnotation, on an AgentClusterInstall, is a hash of what the control plane provider last wrote of what is changeable before
// the installation. The cache does not hold fields that are newer than its types, and the API server adds defaults: only a record tells
// that there is nothing to write.
const InstallSpecAnnotation = "controlplane.cluster.x-k8s.io/install-spec"

// Roles of an Agent.
const (
	// RoleMaster is the role of control-plane hosts.
	RoleMaster = "master"
	// RoleArbiter is the role of the host that gives two control-plane hosts a quorum.
	RoleArbiter = "arbiter"
	// RoleWorker is the role of the others.
	RoleWorker = "worker"
)

// AgentServiceConfigName is the name of the only AgentServiceConfig.
const AgentServiceConfigName = "agent"

// Values of fields of an InfraEnv.
const (
	// DefaultCPUArchitecture is the architecture of an InfraEnv, and of an OSImage, that names none.
	DefaultCPUArchitecture = "x86_64"
	// ImageTypeMinimal and ImageTypeFull are types of live ISOs.
	ImageTypeMinimal = "minimal-iso"
	// ImageTypeFull: see ImageTypeMinimal.
	ImageTypeFull = "full-iso"
	// KernelArgumentAppend is the only operation that the service allows (ASSISTED 1.1).
	KernelArgumentAppend = "append"
)

// Values of an AgentClusterInstall's diskEncryption.
const (
	// EncryptNone and EncryptAll say which hosts are encrypted, and so does a list of the others, separated by commas and in this order.
	EncryptNone = "none"
	// EncryptAll: see EncryptNone.
	EncryptAll = "all"
	// EncryptMasters: see EncryptNone.
	EncryptMasters = "masters"
	// EncryptArbiters: see EncryptNone.
	EncryptArbiters = "arbiters"
	// EncryptWorkers: see EncryptNone.
	EncryptWorkers = "workers"
	// EncryptByTPM and EncryptByTang say where the keys are.
	EncryptByTPM = "tpmv2"
	// EncryptByTang: see EncryptByTPM.
	EncryptByTang = "tang"
)

// Types and reasons of assisted-service's conditions that decisions depend on (ASSISTED 1.1, 1.2).
const (
	// ConditionImageCreated, on an InfraEnv: it has an image.
	ConditionImageCreated = "ImageCreated"
	// ReasonImageCreationError: the InfraEnv's input was refused.
	ReasonImageCreationError = "ImageCreationError"
	// ConditionBound, on an Agent: it belongs to a cluster.
	ConditionBound = "Bound"
	// ConditionSpecSynced: the service took over the spec. False is normal for minutes while a host binds or unbinds (DESIGN D8).
	ConditionSpecSynced = "SpecSynced"
	// ConditionRequirementsMet, on an Agent: see ReasonAgentIsReady.
	ConditionRequirementsMet = "RequirementsMet"
	// ReasonAgentIsReady of RequirementsMet: known and approved.
	ReasonAgentIsReady = "AgentIsReady"
	// ConditionValidated: the checks pass.
	ConditionValidated = "Validated"
	// ConditionConnected, on an Agent: the service hears from the host.
	ConditionConnected = "Connected"
	// ConditionInstalled, on an Agent: the installation of the host is complete.
	ConditionInstalled = "Installed"
	// ReasonInstallationFailed of Installed: the installation of the host failed.
	ReasonInstallationFailed = "InstallationFailed"
	// ReasonInstallationInProgress of Installed: the installation of the host runs.
	ReasonInstallationInProgress = "InstallationInProgress"
	// ReasonInputError of SpecSynced: the service refused the spec and does not try again by itself (ASSISTED 8.4).
	ReasonInputError = "InputError"
)

// DriveTypeHDD is the type of disks with spinning media.
const DriveTypeHDD = "HDD"

// States of an Agent for which no condition exists (DESIGN D8).
const (
	// AgentStateDiscoveringUnbound: registered, bound to no cluster, and not examined yet: its hardware is not reported, or was reported
	// since the service last looked, which it does every 8 to 10 s.
	AgentStateDiscoveringUnbound = "discovering-unbound"
	// AgentStateKnownUnbound: discovered, its checks pass, and bound to no cluster: it may be bound now.
	AgentStateKnownUnbound = "known-unbound"
	// AgentStateKnown: bound and ready to be installed.
	AgentStateKnown = "known"
	// AgentStateInsufficient: bound, and its checks fail.
	AgentStateInsufficient = "insufficient"
	// AgentStatePendingForInput: bound, and a check waits for settings of the cluster.
	AgentStatePendingForInput = "pending-for-input"
	// AgentStatePreparing: bound, and being prepared for the installation: nothing is written to its disk yet.
	AgentStatePreparing = "preparing-for-installation"
	// AgentStatePreparingSuccessful: prepared, and waiting for the other hosts.
	AgentStatePreparingSuccessful = "preparing-successful"
	// AgentStatePreparingFailed: bound, and its part of the preparation of the installation failed. It is left for another state within
	// seconds.
	AgentStatePreparingFailed = "preparing-failed"
	// AgentStatePendingUserAction: the host booted the wrong medium, or did not boot; somebody has to act.
	AgentStatePendingUserAction = "installing-pending-user-action"
)

// unboundSuffix ends the states of Agents that are bound to no cluster.
const unboundSuffix = "-unbound"

// discoveryStates are the states, without unboundSuffix, of a host that runs the discovery image and whose installation has not begun
// (ASSISTED 1.2).
var discoveryStates = []string{
	"discovering", "disconnected", "binding", AgentStateKnown, AgentStateInsufficient, AgentStatePendingForInput, AgentStatePreparing,
	AgentStatePreparingSuccessful, AgentStatePreparingFailed,
}

// AdminKubeconfigSuffix ends the name of the Secret by which assisted-service reaches an installed cluster. Before it comes the name of the
// ClusterDeployment (ASSISTED 1.4).
const AdminKubeconfigSuffix = "-admin-kubeconfig"

// StageDone is the last stage of the installation of a host (ASSISTED 1.2).
const StageDone = "Done"

// States of an AgentClusterInstall that decisions depend on (ASSISTED 1.3).
const (
	// ClusterStateInsufficient, ClusterStateReady and ClusterStatePending flap among each other; they are only used as one set.
	ClusterStateInsufficient = "insufficient"
	// ClusterStateReady: see ClusterStateInsufficient.
	ClusterStateReady = "ready"
	// ClusterStatePending: see ClusterStateInsufficient.
	ClusterStatePending = "pending-for-input"
	// ClusterStateAddingHosts: installed, takes day-2 hosts.
	ClusterStateAddingHosts = "adding-hosts"
	// ClusterStatePreparing: the installation has begun.
	ClusterStatePreparing = "preparing-for-installation"
	// ClusterStateInstalling: hosts are being installed.
	ClusterStateInstalling = "installing"
	// ClusterStateInstallingPending: hosts are being installed and one waits for somebody to act.
	ClusterStateInstallingPending = "installing-pending-user-action"
	// ClusterStateFinalizing: the cluster's operators are being installed.
	ClusterStateFinalizing = "finalizing"
)
