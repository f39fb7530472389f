// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NMStateInterface tells assisted-service which device a name in an nmstate document stands for.
type NMStateInterface struct {
	// Name is the interface's name in the document.
	Name string `json:"name"`
	// MACAddress is the device's hardware address.
	MACAddress string `json:"macAddress"`
}

// NMStateConfigSpec is the static network configuration of one host.
type NMStateConfigSpec struct {
	// Interfaces are the devices by which a host is found, and which are named as the document names them.
	Interfaces []NMStateInterface `json:"interfaces,omitempty"`
	// Config is the nmstate document.
	Config apiextensionsv1.JSON `json:"config,omitempty"`
}

// NMStateConfig is the consumer side of agent-install.openshift.io/v1beta1 NMStateConfig. InfraEnvs select it by label; it has no status.
// +kubebuilder:object:root=true
type NMStateConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NMStateConfigSpec `json:"spec,omitempty"`
}

// NMStateConfigList is a list of NMStateConfig.
// +kubebuilder:object:root=true
type NMStateConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NMStateConfig `json:"items"`
}
