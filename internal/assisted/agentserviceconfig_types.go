// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OSImage is an operating system that assisted-service can make discovery images of.
type OSImage struct {
	// OpenshiftVersion is the release that the image belongs to: a minor version such as 4.20, or a version of three numbers. The service
	// takes a minor version for the newest image of it.
	OpenshiftVersion string `json:"openshiftVersion"`
	// CPUArchitecture is the architecture of the image; empty is DefaultCPUArchitecture.
	CPUArchitecture string `json:"cpuArchitecture,omitempty"`
}

// AgentServiceConfigSpec holds the fields of the AgentServiceConfig's spec that the bootstrap provider reads.
type AgentServiceConfigSpec struct {
	// OSImages are the images that the service has. It has others, which nobody can read here, while there are none.
	OSImages []OSImage `json:"osImages,omitempty"`
}

// AgentServiceConfig is the consumer side of agent-install.openshift.io/v1beta1 AgentServiceConfig, by which the operator installs
// assisted-service. It is cluster-scoped, and the only one has the name AgentServiceConfigName (ASSISTED 1.5).
// +kubebuilder:object:root=true
type AgentServiceConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AgentServiceConfigSpec `json:"spec,omitempty"`
}

// AgentServiceConfigList is a list of AgentServiceConfig.
// +kubebuilder:object:root=true
type AgentServiceConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AgentServiceConfig `json:"items"`
}
