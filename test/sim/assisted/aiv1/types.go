// SPDX-License-Identifier: Apache-2.0

package aiv1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterReference names a ClusterDeployment.
type ClusterReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Condition is the condition of InfraEnv and Agent: the usual fields plus a probe time that the service rewrites.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastHeartbeatTime  metav1.Time            `json:"lastHeartbeatTime,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
}

// InfraEnv describes discovery media.
//
// +kubebuilder:object:root=true
type InfraEnv struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfraEnvSpec   `json:"spec,omitempty"`
	Status InfraEnvStatus `json:"status,omitempty"`
}

// InfraEnvList is a list of InfraEnv.
//
// +kubebuilder:object:root=true
type InfraEnvList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InfraEnv `json:"items"`
}

// InfraEnvSpec holds the fields that decide which image is made. Those that only change its content are kept as raw
// JSON: the simulator asks no more than whether they differ.
type InfraEnvSpec struct {
	PullSecretRef               *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	ClusterRef                  *ClusterReference            `json:"clusterRef,omitempty"`
	SSHAuthorizedKey            string                       `json:"sshAuthorizedKey,omitempty"`
	Proxy                       *apiextensionsv1.JSON        `json:"proxy,omitempty"`
	AdditionalNTPSources        []string                     `json:"additionalNTPSources,omitempty"`
	NTPSources                  []string                     `json:"ntpSources,omitempty"`
	AgentLabels                 map[string]string            `json:"agentLabels,omitempty"`
	NMStateConfigLabelSelector  *metav1.LabelSelector        `json:"nmStateConfigLabelSelector,omitempty"`
	IgnitionConfigOverride      string                       `json:"ignitionConfigOverride,omitempty"`
	CPUArchitecture             string                       `json:"cpuArchitecture,omitempty"`
	KernelArguments             []KernelArgument             `json:"kernelArguments,omitempty"`
	AdditionalTrustBundle       string                       `json:"additionalTrustBundle,omitempty"`
	OSImageVersion              string                       `json:"osImageVersion,omitempty"`
	ImageType                   string                       `json:"imageType,omitempty"`
	NetworkDiscoveryDelaySecond *int64                       `json:"networkDiscoveryDelaySeconds,omitempty"`
	MirrorRegistryRef           *ConfigMapReference          `json:"mirrorRegistryRef,omitempty"`
}

// ConfigMapReference names a ConfigMap.
type ConfigMapReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// KernelArgument is one change of the discovery kernel's command line. Only the operation "append" is allowed.
type KernelArgument struct {
	Operation string `json:"operation,omitempty"`
	Value     string `json:"value,omitempty"`
}

// InfraEnvStatus is written by the service alone.
type InfraEnvStatus struct {
	ISODownloadURL     string               `json:"isoDownloadURL,omitempty"`
	CreatedTime        *metav1.Time         `json:"createdTime,omitempty"`
	Conditions         []Condition          `json:"conditions,omitempty"`
	AgentLabelSelector metav1.LabelSelector `json:"agentLabelSelector,omitempty"`
	DebugInfo          InfraEnvDebugInfo    `json:"debugInfo"`
	BootArtifacts      BootArtifacts        `json:"bootArtifacts"`
}

// InfraEnvDebugInfo has links for people.
type InfraEnvDebugInfo struct {
	EventsURL string `json:"eventsURL"`
}

// BootArtifacts are the parts of the discovery image, for boots without an ISO.
type BootArtifacts struct {
	Initrd               string `json:"initrd"`
	Kernel               string `json:"kernel"`
	Rootfs               string `json:"rootfs"`
	IPXEScript           string `json:"ipxeScript"`
	DiscoveryIgnitionURL string `json:"discoveryIgnitionURL"`
}

// NMStateConfig is static network configuration that InfraEnvs select by label. It has no status.
//
// +kubebuilder:object:root=true
type NMStateConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec *apiextensionsv1.JSON `json:"spec,omitempty"`
}

// NMStateConfigList is a list of NMStateConfig.
//
// +kubebuilder:object:root=true
type NMStateConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NMStateConfig `json:"items"`
}
