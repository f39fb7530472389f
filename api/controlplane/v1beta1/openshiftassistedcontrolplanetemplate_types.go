// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// OpenshiftAssistedControlPlaneTemplateSpec is the desired state of an OpenshiftAssistedControlPlaneTemplate.
type OpenshiftAssistedControlPlaneTemplateSpec struct {
	// template is what every control plane made from this template looks like.
	// +required
	Template OpenshiftAssistedControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateResource is the metadata and spec of the control planes made from a template (CONTRACT CP-18).
type OpenshiftAssistedControlPlaneTemplateResource struct {
	// metadata is put on every control plane made from the template.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of every control plane made from the template, without what the Cluster's topology owns.
	// +required
	Spec OpenshiftAssistedControlPlaneTemplateResourceSpec `json:"spec,omitempty"`
}

// OpenshiftAssistedControlPlaneTemplateResourceSpec is an OpenshiftAssistedControlPlaneSpec without the fields that the Cluster's topology
// owns: replicas, version, the infrastructure reference and the readiness gates (CONTRACT CP-18). What a control plane needs may be
// missing, because the patches of a ClusterClass can add it, and it may change, because no control plane changes with it but through its
// Cluster's topology.
type OpenshiftAssistedControlPlaneTemplateResourceSpec struct {
	// distributionVersion is the version of the OpenShift or OKD release, for example 4.20.4.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?$')",message="must be the version of a release such as 4.20.4, without a leading v"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?$') || int(self.split('.')[0]) > 4 || (int(self.split('.')[0]) == 4 && int(self.split('.')[1]) >= 17)",message="must be 4.17 or newer: older releases set a provider ID of their own on Nodes"
	DistributionVersion string `json:"distributionVersion,omitempty"`

	// release says where the release comes from. Defaults to the public image of distributionVersion.
	// +optional
	Release ReleaseSpec `json:"release,omitempty,omitzero"`

	// machineTemplate says what the control-plane Machines look like.
	// +optional
	MachineTemplate TemplateMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of every control-plane Machine's OpenshiftAssistedConfig.
	// +optional
	OpenshiftAssistedConfigSpec bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty,omitzero"`

	// install is what the Assisted Installer installs.
	// +optional
	Install InstallSpec `json:"install,omitempty,omitzero"`

	// remediation says how often Machines are replaced that a MachineHealthCheck finds unhealthy.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// rollout says whether and when Machines are replaced that are outdated.
	// +optional
	Rollout RolloutSpec `json:"rollout,omitempty,omitzero"`

	// upgrade says what else the version operator of an installed cluster needs to know when distributionVersion changes.
	// +optional
	Upgrade TemplateUpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// kubeconfig says what the Secret <cluster>-kubeconfig holds.
	// +optional
	Kubeconfig KubeconfigSpec `json:"kubeconfig,omitempty,omitzero"`
}

// TemplateMachineTemplate is a MachineTemplate without the infrastructure reference.
// +kubebuilder:validation:MinProperties=1
type TemplateMachineTemplate struct {
	// metadata is put on Machines, infrastructure machines and configs, and kept up to date in place.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the part of the Machines' spec that the user decides.
	// +optional
	Spec TemplateMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// TemplateMachineTemplateSpec is a MachineTemplateSpec without what the Cluster's topology owns: infrastructure reference and readiness
// gates.
// +kubebuilder:validation:MinProperties=1
type TemplateMachineTemplateSpec struct {
	// deletion are the time-outs of a Machine's deletion.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are put on the Nodes by Cluster API, and kept up to date in place. Its core refuses them unless it runs with the feature gate
	// MachineTaintPropagation (CONTRACT CP-14).
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// OpenshiftAssistedControlPlaneTemplate is what a ClusterClass makes an OpenshiftAssistedControlPlane from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedcontrolplanetemplates,scope=Namespaced,categories=cluster-api,shortName=oacpt
// +kubebuilder:printcolumn:name="OpenShift",type=string,JSONPath=`.spec.template.spec.distributionVersion`,description="OpenShift version"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the template was created"
type OpenshiftAssistedControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec OpenshiftAssistedControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateList is a list of OpenshiftAssistedControlPlaneTemplate.
// +kubebuilder:object:root=true
type OpenshiftAssistedControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the templates.
	// +required
	Items []OpenshiftAssistedControlPlaneTemplate `json:"items"`
}
