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

	// InstallationFailedAnnotation records on a control plane with spec.install.retries, as JSON, which attempt was seen to have failed and
	// when, and whether its control-plane hosts were installed and the API of its cluster has answered. The wait for the next attempt is
	// counted from that time. It is removed when the next attempt begins (DESIGN D35).
	InstallationFailedAnnotation = "controlplane.cluster.x-k8s.io/installation-failed"

	// InstalledClusterAnnotation records on a control plane, as JSON, which cluster was installed for it: the attempt, the ID of the OpenShift
	// cluster and the ID under which assisted-service installed it. It outlives a move to another management cluster, where nothing is
	// installed for a control plane that has it: its cluster is imported (DESIGN D22).
	InstalledClusterAnnotation = "controlplane.cluster.x-k8s.io/installed-cluster"

	// NextMachineAnnotation, on a control plane whose cluster is installed, is the number in the name of the next Machine. No number is used
	// twice: etcd knows its members by the names of their Nodes, and may still count the one of a Machine that is gone.
	NextMachineAnnotation = "controlplane.cluster.x-k8s.io/next-machine"

	// EtcdHookAnnotation is the pre-terminate hook on a control-plane Machine that keeps its host from being freed until its member has left
	// etcd (DESIGN D24). Who removes it from a Machine that is being deleted frees the host with its member: etcd counts that member as dead.
	EtcdHookAnnotation = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/openshift-assisted-etcd"

	// EtcdDrainHookAnnotation is the pre-drain hook on a control-plane Machine that keeps its Node from being cordoned while the hosts of the
	// control plane restart one after the other: its member may not leave etcd before that ends, and the machine-config operator restarts no
	// host while another Node is cordoned. It goes too while MachineConfigPool master is paused, all other hosts are back, and three have
	// joined (DESIGN D24).
	EtcdDrainHookAnnotation = "pre-drain.delete.hook.machine.cluster.x-k8s.io/openshift-assisted-etcd"

	// RemediationInProgressAnnotation records on a control plane, as JSON, which unhealthy Machine is replaced, since when, and how many
	// replacements for it have failed before. It goes when the replacement exists. Name and value are those of Cluster API's own control plane
	// provider (DESIGN D26).
	RemediationInProgressAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"

	// RemediationForAnnotation is the same record on the Machine that replaces an unhealthy one.
	RemediationForAnnotation = "controlplane.cluster.x-k8s.io/remediation-for"

	// RequestedReleaseAnnotation records on a control plane, as JSON, the version and image of the wanted release once the ClusterVersion of
	// the cluster was seen to ask for it. A request that is withdrawn or replaced there is not made again before RetryUpgradeAnnotation is
	// set. The record goes when another release is wanted. Who removes it has the release asked for again (DESIGN D28).
	RequestedReleaseAnnotation = "controlplane.cluster.x-k8s.io/requested-release"

	// KnownRisksAnnotation records on a control plane, as JSON, the known risks of a release for its cluster, as the cluster told them last:
	// its ID, the version, and the text of each risk by name. They count while the cluster cannot say what it knows of that release, until
	// they are in spec.upgrade.acceptedRisks. The record goes when the cluster says that none applies, or runs the release (DESIGN D28).
	KnownRisksAnnotation = "controlplane.cluster.x-k8s.io/known-risks"

	// RetryUpgradeAnnotation, set by the user, upgrades a cluster to a release that it has left before, or whose request was withdrawn. Its
	// value does not matter; it is removed when the cluster is asked for the release, or has it (DESIGN D28).
	RetryUpgradeAnnotation = "controlplane.cluster.x-k8s.io/retry-upgrade"

	// KubeconfigTokenAnnotation records on the Secret <cluster>-kubeconfig, as JSON, until when its token is valid and from when on another
	// one is requested (DESIGN D34). Who removes it makes the manager request another token at once.
	KubeconfigTokenAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-token"

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
