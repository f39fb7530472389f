// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Proxy is the proxy of hosts that boot an InfraEnv's image.
type Proxy struct {
	// HTTPProxy is the URL of the proxy for HTTP.
	HTTPProxy string `json:"httpProxy,omitempty"`
	// HTTPSProxy is the URL of the proxy for HTTPS.
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	// NoProxy is a comma-separated list of what is reached without the proxy.
	NoProxy string `json:"noProxy,omitempty"`
}

// KernelArgument is a change of the discovery kernel's command line.
type KernelArgument struct {
	// Operation is KernelArgumentAppend; the service refuses all others.
	Operation string `json:"operation,omitempty"`
	// Value is parameter or parameter=value.
	Value string `json:"value,omitempty"`
}

// ConfigMapReference names a ConfigMap.
type ConfigMapReference struct {
	// Name is the ConfigMap's name.
	Name string `json:"name"`
	// Namespace is the ConfigMap's namespace.
	Namespace string `json:"namespace"`
}

// InfraEnvSpec holds the fields of an InfraEnv's spec that the bootstrap provider sets (ASSISTED 1.1). There is no clusterRef on purpose:
// hosts are bound late (DESIGN D5).
type InfraEnvSpec struct {
	// PullSecretRef names the Secret with the pull secret, in the InfraEnv's namespace.
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// SSHAuthorizedKey may log in as core during discovery.
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`
	// Proxy is the proxy used during discovery.
	Proxy *Proxy `json:"proxy,omitempty"`
	// AdditionalNTPSources are added to the network's NTP servers.
	AdditionalNTPSources []string `json:"additionalNTPSources,omitempty"`
	// AdditionalTrustBundle is a bundle of PEM certificates.
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`
	// CPUArchitecture is the architecture of the image.
	CPUArchitecture string `json:"cpuArchitecture,omitempty"`
	// NMStateConfigLabelSelector selects static network configurations.
	NMStateConfigLabelSelector *metav1.LabelSelector `json:"nmStateConfigLabelSelector,omitempty"`
	// NTPSources take the place of the network's NTP servers. Older releases of the service have no such field.
	NTPSources []string `json:"ntpSources,omitempty"`
	// MirrorRegistryRef names the ConfigMap of mirrors during discovery and installation.
	MirrorRegistryRef *ConfigMapReference `json:"mirrorRegistryRef,omitempty"`
	// NetworkDiscoveryDelaySeconds is how long a minimal ISO waits for network interfaces. Older releases of the service have no such field.
	NetworkDiscoveryDelaySeconds int64 `json:"networkDiscoveryDelaySeconds,omitempty"`
	// ImageType is ImageTypeMinimal, ImageTypeFull or empty.
	ImageType string `json:"imageType,omitempty"`
	// OSImageVersion is the version of the image's operating system.
	OSImageVersion string `json:"osImageVersion,omitempty"`
	// KernelArguments are appended to the image's.
	KernelArguments []KernelArgument `json:"kernelArguments,omitempty"`
	// IgnitionConfigOverride is merged into the image's ignition.
	IgnitionConfigOverride string `json:"ignitionConfigOverride,omitempty"`
}

// BootArtifacts are the parts of the discovery image, for boots without the ISO.
type BootArtifacts struct {
	// DiscoveryIgnitionURL is where the discovery ignition is served. It holds a token: who reads it can register hosts.
	DiscoveryIgnitionURL string `json:"discoveryIgnitionURL,omitempty"`
}

// InfraEnvStatus holds the fields of an InfraEnv's status that the bootstrap provider reads.
type InfraEnvStatus struct {
	// ISODownloadURL is where the live ISO is; empty while there is none.
	ISODownloadURL string `json:"isoDownloadURL,omitempty"`
	// BootArtifacts are the parts of the discovery image. They may be stale while ConditionImageCreated is not True (ASSISTED 8.7).
	BootArtifacts BootArtifacts `json:"bootArtifacts,omitempty,omitzero"`
	// CreatedTime is when the image was made, in RFC 3339 form.
	CreatedTime string `json:"createdTime,omitempty"`
	// Conditions are assisted-service's; see ConditionImageCreated.
	Conditions []Condition `json:"conditions,omitempty"`
}

// InfraEnv is the consumer side of agent-install.openshift.io/v1beta1 InfraEnv.
// +kubebuilder:object:root=true
type InfraEnv struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfraEnvSpec   `json:"spec,omitempty"`
	Status InfraEnvStatus `json:"status,omitempty,omitzero"`
}

// InfraEnvList is a list of InfraEnv.
// +kubebuilder:object:root=true
type InfraEnvList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InfraEnv `json:"items"`
}

// Condition is a condition as assisted-service writes it. Its reasons may hold spaces, so it is never copied into a condition of ours
// (DESIGN D20).
type Condition struct {
	// Type is the condition's type.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// Reason is a word or a sentence.
	Reason string `json:"reason,omitempty"`
	// Message is for people.
	Message string `json:"message,omitempty"`
	// LastTransitionTime is when the status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
}
