// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// Platform is the platform of the installed cluster.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self in ['BareMetal', 'None', 'External']",message="must be BareMetal, None or External: Nutanix, VSphere and clouds have virtual machines instead of the BareMetalHosts that Cluster API boots here"
type Platform string

const (
	// PlatformBareMetal lets the cluster manage its API and ingress addresses itself.
	PlatformBareMetal Platform = "BareMetal"

	// PlatformNone leaves load balancing to the user; a single-node cluster has it unless it asks for External.
	PlatformNone Platform = "None"

	// PlatformExternal is PlatformNone with the name of a provider, which may bring a cloud controller manager.
	PlatformExternal Platform = "External"
)

// InstallSpec is what the Assisted Installer installs. Every field is optional here, because a template may leave all of them to the
// patches of a ClusterClass; a control plane needs baseDomain and pullSecretRef. What is changeable before the installation is changeable
// again when an installation has failed, for the next attempt.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.apiVIPs) == has(self.ingressVIPs)",message="apiVIPs and ingressVIPs must be set together"
// +kubebuilder:validation:XValidation:rule="!has(self.apiVIPs) || !has(self.ingressVIPs) || size(self.apiVIPs) == size(self.ingressVIPs)",message="apiVIPs and ingressVIPs must have one address per IP family each"
// +kubebuilder:validation:XValidation:rule="!has(self.platform) || self.platform == 'BareMetal' || (!has(self.apiVIPs) && !has(self.ingressVIPs))",message="apiVIPs and ingressVIPs must not be set on platform None or External, where load balancing is the user's"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || (has(self.platform) && self.platform == 'External')",message="must not be set but on platform External",reason=FieldValueForbidden,fieldPath=".external"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancer) || !has(self.platform) || self.platform == 'BareMetal'",message="must not be set but on platform BareMetal: load balancing is the user's on platforms None and External",reason=FieldValueForbidden,fieldPath=".loadBalancer"
type InstallSpec struct {
	// baseDomain is the DNS domain below which the cluster's names live, for example example.com. A control plane needs it. Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS domain in lower case, without a leading or trailing dot"
	BaseDomain string `json:"baseDomain,omitempty"`

	// clusterName is the name of the OpenShift cluster. Defaults to the name of the Cluster. Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=54
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be a DNS label: lower-case letters, digits and '-'"
	ClusterName string `json:"clusterName,omitempty"`

	// apiVIPs are the virtual IP addresses of the API, one per IP family; the first must be the host of the Cluster's control-plane endpoint.
	// Changeable before the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address"
	APIVIPs []string `json:"apiVIPs,omitempty"`

	// ingressVIPs are the virtual IP addresses of the ingress, one per IP family. Changeable before the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address"
	IngressVIPs []string `json:"ingressVIPs,omitempty"`

	// platform is the platform of the cluster: BareMetal, None or External. Load balancing and DNS of the API and the ingress are the user's
	// on None and External. Defaults to None for a single-node control plane and to BareMetal otherwise. Never changeable.
	// +optional
	Platform Platform `json:"platform,omitempty"`

	// twoNode is how a control plane of two hosts keeps its quorum: Arbiter, with a third host that runs etcd and little else, the Machine
	// with the label node-role.kubernetes.io/arbiter; or Fencing, where the hosts power each other off, by credentials that their
	// BareMetalHosts name. Never changeable.
	// +optional
	TwoNode TwoNodeTopology `json:"twoNode,omitempty"`

	// external says what is known of the provider of platform External. Never changeable.
	// +optional
	External ExternalPlatformSpec `json:"external,omitempty,omitzero"`

	// loadBalancer says who balances the load of the API and the ingress on platform BareMetal. Changeable before the installation.
	// +optional
	LoadBalancer LoadBalancerSpec `json:"loadBalancer,omitempty,omitzero"`

	// schedulableControlPlane lets workloads run on control-plane Nodes. A cluster with fewer than two workers lets them in any case. Defaults
	// to false. Changeable before the installation.
	// +optional
	SchedulableControlPlane *bool `json:"schedulableControlPlane,omitempty"`

	// networking are the cluster's networks. Changeable before the installation.
	// +optional
	Networking NetworkingSpec `json:"networking,omitempty,omitzero"`

	// sshAuthorizedKey is a public key, in authorized_keys form, that may log in as core on the installed hosts. Changeable before the
	// installation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self.matches('^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh.com|sk-ecdsa-sha2-nistp256@openssh.com) [A-Za-z0-9+/=]+( [^\\\\n]*)?\\\\n?$')",message="must be one public key in authorized_keys form, for example \"ssh-ed25519 AAAA... user@host\""
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`

	// pullSecretRef names a Secret in this namespace whose key .dockerconfigjson holds the pull secret of the cluster. A control plane needs
	// it. Never changeable.
	// +optional
	PullSecretRef bootstrapv1.LocalSecretReference `json:"pullSecretRef,omitempty,omitzero"`

	// proxy is the proxy of the installed cluster; that of discovery is openshiftAssistedConfigSpec.proxy. Changeable before the installation.
	// +optional
	Proxy bootstrapv1.ProxySpec `json:"proxy,omitempty,omitzero"`

	// ntpSources are NTP servers (host names or IP addresses) that the installed hosts use instead of those of their networks. It needs a
	// release of assisted-service from August 2026 or later, and excludes additionalNTPSources of the hosts' configs. Changeable before the
	// installation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9:])?$')",message="must be a host name or an IP address"
	NTPSources []string `json:"ntpSources,omitempty"`

	// diskEncryption encrypts the installation disks. Changeable before the installation.
	// +optional
	DiskEncryption DiskEncryptionSpec `json:"diskEncryption,omitempty,omitzero"`

	// manifestsConfigMapRefs name ConfigMaps in this namespace whose values are manifests that the installer adds to its own; no key may be in
	// two of them. Changeable before the installation.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ManifestsConfigMapRefs []LocalConfigMapReference `json:"manifestsConfigMapRefs,omitempty"`

	// mirrorRegistryRef names a ConfigMap in this namespace with the mirrors of the installed cluster's registries: key registries.conf in the
	// form of containers-registries.conf(5), and optionally key ca-bundle.crt. The manager asks them what the release image is, too.
	// Changeable before the installation.
	// +optional
	MirrorRegistryRef LocalConfigMapReference `json:"mirrorRegistryRef,omitempty,omitzero"`

	// hyperthreading says by role whether hosts use hyperthreading. Changeable before the installation.
	// +optional
	Hyperthreading HyperthreadingSpec `json:"hyperthreading,omitempty,omitzero"`

	// holdInstallation keeps the installation from beginning while it is true, whatever hosts are ready; they are discovered and checked
	// meanwhile. Defaults to false. Changeable before the installation.
	// +optional
	HoldInstallation *bool `json:"holdInstallation,omitempty"`

	// capabilities are the optional components of the cluster. Defaults to all that the release has on platform BareMetal but MachineAPI,
	// DeploymentConfig, openshift-samples and CloudControllerManager, and to what the release says elsewhere. Changeable before the
	// installation.
	// +optional
	Capabilities CapabilitiesSpec `json:"capabilities,omitempty,omitzero"`

	// featureSet turns on features that are no part of the release's support; the cluster can then never be upgraded. Changeable before the
	// installation.
	// +optional
	FeatureSet FeatureSet `json:"featureSet,omitempty"`

	// fips installs the cluster in FIPS mode, for which assisted-service has to run in it too. Defaults to false. Changeable before the
	// installation.
	// +optional
	FIPS *bool `json:"fips,omitempty"`

	// cpuPartitioning keeps the platform's own workloads on CPUs that a PerformanceProfile reserves: AllNodes or None. Defaults to None.
	// Changeable before the installation.
	// +optional
	CPUPartitioning CPUPartitioning `json:"cpuPartitioning,omitempty"`

	// configOverrides is an object that is merged into the install-config, for what no field exists for. Keys that fields are for are refused.
	// Changeable before the installation.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:pruning:PreserveUnknownFields
	ConfigOverrides runtime.RawExtension `json:"configOverrides,omitempty,omitzero"`

	// ignoredValidations are checks of assisted-service whose failure does not keep the installation from beginning. Such a cluster is not
	// supported by anybody. Changeable before the installation.
	// +optional
	IgnoredValidations IgnoredValidationsSpec `json:"ignoredValidations,omitempty,omitzero"`

	// workerWaitTimeoutSeconds is how long the installation waits for workers after all control-plane hosts are ready. Workers that come later
	// join afterwards. Defaults to 1800. Changeable before the installation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	WorkerWaitTimeoutSeconds *int32 `json:"workerWaitTimeoutSeconds,omitempty"`

	// retries is how many attempts begin by themselves after an installation has failed: with 3 there are at most 4 attempts. The next attempt
	// begins 10 minutes after the first one has failed, and each later one waits twice as long. None begins by itself once the API of the
	// cluster may have answered, or a control-plane host may have been installed: the cluster may hold data. The condition Installed says why
	// none does. Defaults to 0. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3
	Retries *int32 `json:"retries,omitempty"`

	// hostRegistrationTimeoutSeconds is how long a host of the Cluster, of a worker as well, may take to register with assisted-service
	// once its BareMetalHost is provisioned. A host that takes longer is power-cycled once; when it has not registered after the same time
	// again, the condition HostRecognized of its OpenshiftAssistedConfig says so, and so does its Machine. It is here, and not in the
	// configs, because one time fits all hosts and because it takes effect on hosts that wait already. 0 is without limit. Defaults to
	// 1800. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	HostRegistrationTimeoutSeconds *int32 `json:"hostRegistrationTimeoutSeconds,omitempty"`
}

// TwoNodeTopology is how a control plane of two hosts keeps its quorum.
// +kubebuilder:validation:Enum=Arbiter;Fencing
type TwoNodeTopology string

const (
	// TwoNodeArbiter: a third host, the arbiter, has a vote. It needs release 4.20, or 4.19 with feature set TechPreviewNoUpgrade.
	TwoNodeArbiter TwoNodeTopology = "Arbiter"

	// TwoNodeFencing: a host that does not answer is powered off by the other one. It needs release 4.22, or 4.20 with feature set
	// TechPreviewNoUpgrade.
	TwoNodeFencing TwoNodeTopology = "Fencing"
)

// ExternalPlatformSpec says what is known of the provider of platform External.
// +kubebuilder:validation:MinProperties=1
type ExternalPlatformSpec struct {
	// platformName is the name of the provider, which is only reported. Defaults to Unknown. Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlatformName string `json:"platformName,omitempty"`

	// cloudControllerManager is External when the user installs a cloud controller manager by manifests, until which Nodes take no workloads.
	// It must leave the provider ID of Nodes to Cluster API. Defaults to None. Never changeable.
	// +optional
	CloudControllerManager CloudControllerManager `json:"cloudControllerManager,omitempty"`
}

// CloudControllerManager says whether the cluster has a cloud controller manager.
// +kubebuilder:validation:Enum=External;None
type CloudControllerManager string

const (
	// CloudControllerManagerExternal: the user installs one.
	CloudControllerManagerExternal CloudControllerManager = "External"

	// CloudControllerManagerNone: there is none.
	CloudControllerManagerNone CloudControllerManager = "None"
)

// LocalConfigMapReference names a ConfigMap in the namespace of the object that refers to it.
type LocalConfigMapReference struct {
	// name is the name of the ConfigMap. Changeable before the installation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// HostRole is the role of a host in the cluster.
// +kubebuilder:validation:Enum=ControlPlane;Arbiter;Worker
type HostRole string

const (
	// HostRoleControlPlane is that of control-plane hosts.
	HostRoleControlPlane HostRole = "ControlPlane"

	// HostRoleArbiter is that of the arbiter of two control-plane hosts.
	HostRoleArbiter HostRole = "Arbiter"

	// HostRoleWorker is that of the others.
	HostRoleWorker HostRole = "Worker"
)

// HyperthreadingSpec says by role whether hosts use hyperthreading.
// +kubebuilder:validation:MinProperties=1
type HyperthreadingSpec struct {
	// controlPlane is Enabled or Disabled. Defaults to Enabled. Changeable before the installation.
	// +optional
	ControlPlane Hyperthreading `json:"controlPlane,omitempty"`

	// arbiter is Enabled or Disabled. Defaults to Enabled. Changeable before the installation.
	// +optional
	Arbiter Hyperthreading `json:"arbiter,omitempty"`

	// worker is Enabled or Disabled. Defaults to Enabled. Changeable before the installation.
	// +optional
	Worker Hyperthreading `json:"worker,omitempty"`
}

// Hyperthreading is whether a host uses hyperthreading.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Hyperthreading string

const (
	// HyperthreadingEnabled: it does.
	HyperthreadingEnabled Hyperthreading = "Enabled"

	// HyperthreadingDisabled: it does not.
	HyperthreadingDisabled Hyperthreading = "Disabled"
)

// CapabilitiesSpec are the optional components of a cluster. On platform BareMetal, MachineAPI is left out of every baseline, because it
// would give Nodes a provider ID that Cluster API does not know; baremetal and Ingress are always in.
// +kubebuilder:validation:MinProperties=1
type CapabilitiesSpec struct {
	// baseline is the set of capabilities to begin with: None, that of a release such as v4.18, or vCurrent, that of the installed release.
	// Defaults to vCurrent. Changeable before the installation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self in ['None', 'v4.11', 'v4.12', 'v4.13', 'v4.14', 'v4.15', 'v4.16', 'v4.17', 'v4.18', 'vCurrent']",message="must be None, v4.11 to v4.18, or vCurrent"
	Baseline string `json:"baseline,omitempty"`

	// additional are capabilities besides those of the baseline, for example NodeTuning. Changeable before the installation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9-]*$')",message="must be the name of a capability such as NodeTuning"
	Additional []string `json:"additional,omitempty"`
}

// FeatureSet is a set of features that are no part of the release's support.
// +kubebuilder:validation:Enum=TechPreviewNoUpgrade;CustomNoUpgrade;DevPreviewNoUpgrade
type FeatureSet string

// CPUPartitioning is which hosts keep CPUs for the platform's own workloads.
// +kubebuilder:validation:Enum=None;AllNodes
type CPUPartitioning string

// CPUPartitioningNone: no host keeps CPUs.
const CPUPartitioningNone CPUPartitioning = "None"

// IgnoredValidationsSpec are checks of assisted-service that may fail.
// +kubebuilder:validation:MinProperties=1
type IgnoredValidationsSpec struct {
	// cluster are checks of the cluster by their IDs, for example ntp-server-configured; all is for every one. Those without which nothing can
	// be installed are refused. Changeable before the installation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="must be the ID of a check such as ntp-server-configured"
	// +kubebuilder:validation:items:XValidation:rule="!(self in ['api-vips-defined', 'ingress-vips-defined', 'all-hosts-are-ready-to-install', 'sufficient-masters-count', 'pull-secret-set', 'cluster-preparation-succeeded'])",message="cannot be ignored: nothing can be installed without it"
	Cluster []string `json:"cluster,omitempty"`

	// host are checks of the hosts by their IDs, for example has-min-memory; all is for every one. Those without which nothing can be
	// installed are refused. Changeable before the installation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="must be the ID of a check such as has-min-memory"
	// +kubebuilder:validation:items:XValidation:rule="!(self in ['connected', 'has-inventory', 'machine-cidr-defined', 'hostname-unique', 'hostname-valid'])",message="cannot be ignored: nothing can be installed without it"
	Host []string `json:"host,omitempty"`
}
