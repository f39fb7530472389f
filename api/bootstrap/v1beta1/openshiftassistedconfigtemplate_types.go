// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// OpenshiftAssistedConfigTemplateSpec is the desired state of an OpenshiftAssistedConfigTemplate.
type OpenshiftAssistedConfigTemplateSpec struct {
	// template is what every config made from this template looks like.
	// +required
	Template OpenshiftAssistedConfigTemplateResource `json:"template,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplateResource is the metadata and spec of the configs made from a template (CONTRACT BOOT-11).
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigTemplateResource struct {
	// metadata is put on every config made from the template.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of every config made from the template.
	// +required
	Spec OpenshiftAssistedConfigSpec `json:"spec,omitempty"`
}

// OpenshiftAssistedConfigTemplate is what MachineDeployments make OpenshiftAssistedConfigs from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedconfigtemplates,scope=Namespaced,categories=cluster-api,shortName=oact
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the template was created"
type OpenshiftAssistedConfigTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec OpenshiftAssistedConfigTemplateSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplateList is a list of OpenshiftAssistedConfigTemplate.
// +kubebuilder:object:root=true
type OpenshiftAssistedConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the templates.
	// +required
	Items []OpenshiftAssistedConfigTemplate `json:"items"`
}
