// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostIdentity is the rule by which an Agent is recognised as the host of a Machine.
// +kubebuilder:validation:Enum=BareMetalHost;InfraEnv
type HostIdentity string

const (
	// HostIdentityBareMetalHost recognises an Agent by the inventory of the BareMetalHost that the Machine consumes (DESIGN D6).
	HostIdentityBareMetalHost HostIdentity = "BareMetalHost"

	// HostIdentityInfraEnv gives the Machine an InfraEnv of its own, whose only Agent is its host (DESIGN D6).
	HostIdentityInfraEnv HostIdentity = "InfraEnv"
)

// CPUArchitecture is a processor architecture in the spelling of the Assisted Installer.
// +kubebuilder:validation:Enum=x86_64;aarch64;ppc64le;s390x
type CPUArchitecture string

// CPUArchitectureX86 is the architecture that is assumed when none is given.
const CPUArchitectureX86 CPUArchitecture = "x86_64"

// CPUArchitectureOf is an architecture in the spelling of the Assisted Installer, which others call by the name that container images have.
func CPUArchitectureOf(name string) CPUArchitecture {
	switch name {
	case "amd64":
		return CPUArchitectureX86
	case "arm64":
		return "aarch64"
	default:
		return CPUArchitecture(name)
	}
}

// Architecture is the architecture of the host, also when none is given.
func (s OpenshiftAssistedConfigSpec) Architecture() CPUArchitecture {
	return cmp.Or(s.CPUArchitecture, CPUArchitectureX86)
}

// Effective is the spec as it is acted on: two specs whose effective ones are equal ask for the same host. Defaults are written out, and
// lists whose order means nothing are sorted. Kernel arguments keep their order, because the kernel reads them in it.
func (s OpenshiftAssistedConfigSpec) Effective() OpenshiftAssistedConfigSpec {
	s.Boot.Mode = cmp.Or(s.Boot.Mode, BootModeLiveISO)
	s.CPUArchitecture = s.Architecture()
	s.HostIdentity = cmp.Or(s.HostIdentity, HostIdentityBareMetalHost)
	s.Proxy.NoProxy = sorted(s.Proxy.NoProxy)
	s.AdditionalNTPSources, s.NTPSources = sorted(s.AdditionalNTPSources), sorted(s.NTPSources)
	s.NMStateConfigSelector = sortedSelector(s.NMStateConfigSelector)
	s.NodeRegistration.Name = cmp.Or(s.NodeRegistration.Name, NodeNameMachine)
	s.NodeRegistration.Labels = slices.SortedFunc(slices.Values(s.NodeRegistration.Labels), func(a, b NodeLabel) int {
		return cmp.Compare(a.Key, b.Key)
	})
	s.Installation.DeletedKernelArguments = sorted(s.Installation.DeletedKernelArguments)
	return s
}

// sorted is a copy of a list in the order of the alphabet.
func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// sortedSelector is a copy of a selector whose requirements, and their values, are in the order of the alphabet.
func sortedSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	selector = selector.DeepCopy()
	for i := range selector.MatchExpressions {
		slices.Sort(selector.MatchExpressions[i].Values)
	}
	slices.SortFunc(selector.MatchExpressions, func(a, b metav1.LabelSelectorRequirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	return selector
}

// OpenshiftAssistedConfigSpec says how a host is discovered and how its Node registers. The discovery-relevant part (all but
// nodeRegistration and installation) decides which InfraEnv the host uses (DESIGN D5). The last sentence of a field's description, or of
// the field around it, says until when an OpenshiftAssistedConfig may change it. Later changes are rejected, because nothing would apply
// them. Templates, and a control plane's openshiftAssistedConfigSpec, may change at any time: the change is for configs that are made
// later.
// +kubebuilder:validation:XValidation:rule="!has(self.boot) || !has(self.boot.mode) || self.boot.mode != 'UserData' || !has(self.discovery) || !has(self.discovery.kernelArguments)",fieldPath=".discovery.kernelArguments",message="must not be set with boot.mode UserData: a disk image brings its own kernel arguments"
// +kubebuilder:validation:XValidation:rule="!has(self.ntpSources) || !has(self.additionalNTPSources)",fieldPath=".ntpSources",message="must not be set together with additionalNTPSources: name all servers here"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalTrustBundleRef) || !has(self.additionalTrustBundle)",fieldPath=".additionalTrustBundleRef",message="must not be set together with additionalTrustBundle: put all certificates into the ConfigMap"
// +kubebuilder:validation:XValidation:rule="!has(self.networkDiscoveryDelaySeconds) || !has(self.boot) || ((!has(self.boot.mode) || self.boot.mode != 'UserData') && (!has(self.boot.imageType) || self.boot.imageType != 'Full'))",fieldPath=".networkDiscoveryDelaySeconds",message="must be set for minimal live ISOs only: not with boot.mode UserData or boot.imageType Full"
// +kubebuilder:validation:XValidation:rule="!has(self.staticNetworking) || !has(self.nmStateConfigSelector)",fieldPath=".staticNetworking",message="must not be set together with nmStateConfigSelector: NMStateConfigs are either yours or made from the hosts' network data"
type OpenshiftAssistedConfigSpec struct {
	// boot says how the host boots the discovery image.
	// +optional
	Boot BootSpec `json:"boot,omitempty,omitzero"`

	// discovery is what is added to the system that the host runs during discovery.
	// +optional
	Discovery DiscoverySpec `json:"discovery,omitempty,omitzero"`

	// pullSecretRef names a Secret in this namespace whose key .dockerconfigjson holds the pull secret used during discovery.
	// When it is not set, the pull secret of the cluster's ClusterDeployment is used.
	// Never changeable.
	// +optional
	PullSecretRef LocalSecretReference `json:"pullSecretRef,omitempty,omitzero"`

	// sshAuthorizedKey is a public key, in authorized_keys form, that may log in as core on the host while it runs the discovery image.
	// Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self.matches('^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh.com|sk-ecdsa-sha2-nistp256@openssh.com) [A-Za-z0-9+/=]+( [^\\\\n]*)?\\\\n?$')",message="must be one public key in authorized_keys form, for example \"ssh-ed25519 AAAA... user@host\""
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`

	// proxy is the proxy that the host uses during discovery.
	// Never changeable.
	// +optional
	Proxy ProxySpec `json:"proxy,omitempty,omitzero"`

	// additionalNTPSources are NTP servers (host names or IP addresses) that the host uses besides those of its network.
	// Never changeable.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9:])?$')",message="must be a host name or an IP address"
	AdditionalNTPSources []string `json:"additionalNTPSources,omitempty"`

	// ntpSources are the only NTP servers (host names or IP addresses) of the host: those of its network are not used. Needs an
	// assisted-service of August 2026 or later. Never changeable.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9:])?$')",message="must be a host name or an IP address"
	NTPSources []string `json:"ntpSources,omitempty"`

	// additionalTrustBundle is a bundle of PEM certificates that the host trusts during discovery and the installed cluster trusts afterwards.
	// Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----') && self.contains('-----END CERTIFICATE-----')",message="must hold PEM blocks of type CERTIFICATE"
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`

	// additionalTrustBundleRef names a ConfigMap in this namespace whose key ca-bundle.crt holds what additionalTrustBundle would, up to 256
	// KiB. It is read once, when the InfraEnv is made. Never changeable.
	// +optional
	AdditionalTrustBundleRef LocalConfigMapReference `json:"additionalTrustBundleRef,omitempty,omitzero"`

	// mirrorRegistryRef names a ConfigMap in this namespace whose key registries.conf says where the host pulls images from during discovery
	// and installation, in the format of containers-registries.conf(5), and whose optional key ca-bundle.crt holds the mirrors' certificates.
	// assisted-service reads it. The installed cluster has mirrors of its own. Never changeable.
	// +optional
	MirrorRegistryRef LocalConfigMapReference `json:"mirrorRegistryRef,omitempty,omitzero"`

	// networkDiscoveryDelaySeconds is how long a minimal live ISO waits for network interfaces to appear before it applies static network
	// configuration to them. Defaults to no wait. Needs a recent assisted-service.
	// Never changeable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	NetworkDiscoveryDelaySeconds int32 `json:"networkDiscoveryDelaySeconds,omitempty"`

	// cpuArchitecture is the architecture of the host. Defaults to x86_64.
	// Never changeable.
	// +optional
	CPUArchitecture CPUArchitecture `json:"cpuArchitecture,omitempty"`

	// nmStateConfigSelector selects the NMStateConfigs that give static network configuration to hosts by MAC address. assisted-service looks
	// for them in all namespaces: choose labels that nobody else uses, or the images get the networks of other namespaces too. Never
	// changeable.
	// +optional
	NMStateConfigSelector *metav1.LabelSelector `json:"nmStateConfigSelector,omitempty"`

	// staticNetworking gives hosts static network configuration of their own. It excludes nmStateConfigSelector.
	// Never changeable.
	// +optional
	StaticNetworking StaticNetworkingSpec `json:"staticNetworking,omitempty,omitzero"`

	// nodeRegistration says how the host registers as a Node.
	// +optional
	NodeRegistration NodeRegistrationSpec `json:"nodeRegistration,omitempty,omitzero"`

	// installation says how the system is installed on the host.
	// +optional
	Installation InstallationSpec `json:"installation,omitempty,omitzero"`

	// hostIdentity is the rule by which the host is recognised. Defaults to BareMetalHost.
	// Never changeable.
	// +optional
	HostIdentity HostIdentity `json:"hostIdentity,omitempty"`
}

// LocalSecretReference names a Secret in the namespace of the object that refers to it.
type LocalSecretReference struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// LocalConfigMapReference names a ConfigMap in the namespace of the object that refers to it.
type LocalConfigMapReference struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// ProxySpec is the proxy of a host.
// +kubebuilder:validation:MinProperties=1
type ProxySpec struct {
	// httpProxy is the URL of the proxy for HTTP requests, for example http://proxy.example.com:3128.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'http'",message="must be a URL with the scheme http"
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the URL of the proxy for HTTPS requests.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be a URL with the scheme http or https"
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// noProxy are host names, domains (with a leading dot), IP addresses and CIDRs that are reached without the proxy; "*" for all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9.:*/_-]+$')",message="must be a host name, a domain, an IP address, a CIDR or \"*\""
	NoProxy []string `json:"noProxy,omitempty"`
}

// OpenshiftAssistedConfigStatus is what became of the config (CONTRACT BOOT-9, BOOT-10, BOOT-50).
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigStatus struct {
	// conditions are the observations of the config's state. Ready is the summary of all that concerns the host until its Node runs.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what Cluster API reads to go on with the Machine.
	// +optional
	Initialization OpenshiftAssistedConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// dataSecretName is the name of the Secret that holds the bootstrap data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// hostRegistration is how far the host is that was booted and has not registered with assisted-service yet; it is not set before, and not
	// after its Agent is claimed.
	// +optional
	HostRegistration HostRegistrationStatus `json:"hostRegistration,omitempty,omitzero"`

	// observedGeneration is the generation of the spec that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// HostRegistrationStatus is how far a host is that has not registered.
// +kubebuilder:validation:MinProperties=1
type HostRegistrationStatus struct {
	// attempt is the number of the boot, counted from 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt *int32 `json:"attempt,omitempty"`

	// nextRetryTime is when the host is power-cycled if it has not registered by then; it is not set while it is not going to be.
	// +optional
	NextRetryTime metav1.Time `json:"nextRetryTime,omitempty,omitzero"`
}

// OpenshiftAssistedConfigInitializationStatus is what Cluster API reads to go on with the Machine (CONTRACT BOOT-10).
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigInitializationStatus struct {
	// dataSecretCreated is true when the bootstrap data is final; it never turns false again.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// OpenshiftAssistedConfig turns a Machine's host into a discovered, recognised and approved Agent.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=openshiftassistedconfigs,scope=Namespaced,categories=cluster-api,shortName=oac
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster that the config belongs to"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether nothing stands in the host's way"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the config is or is not ready"
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.metadata.annotations['bootstrap\.cluster\.x-k8s\.io/agent']`,description="Agent that was recognised as the Machine's host"
// +kubebuilder:printcolumn:name="InfraEnv",type=string,JSONPath=`.metadata.annotations['bootstrap\.cluster\.x-k8s\.io/infra-env']`,description="InfraEnv whose image the host boots",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the config was created"
type OpenshiftAssistedConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec OpenshiftAssistedConfigSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status OpenshiftAssistedConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions, for Cluster API's condition helpers.
func (c *OpenshiftAssistedConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions, for Cluster API's condition helpers.
func (c *OpenshiftAssistedConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// OpenshiftAssistedConfigList is a list of OpenshiftAssistedConfig.
// +kubebuilder:object:root=true
type OpenshiftAssistedConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the configs.
	// +required
	Items []OpenshiftAssistedConfig `json:"items"`
}
