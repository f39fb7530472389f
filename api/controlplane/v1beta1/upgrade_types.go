// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpgradeSpec says what else the version operator of the installed cluster needs to know when distributionVersion changes (DESIGN D28).
// +kubebuilder:validation:MinProperties=1
type UpgradeSpec struct {
	// channel is where the cluster looks for updates and their known risks, for example stable-4.21. It is written to the cluster when set;
	// unset leaves the cluster's own. Changeable at any time.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')",message="must be the name of a channel such as stable-4.21"
	Channel string `json:"channel,omitempty"`

	// acceptedRisks are the known risks of an update that do not keep the cluster from it. The condition Upgrading names those that do.
	// Changeable at any time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	AcceptedRisks []UpgradeRisk `json:"acceptedRisks,omitempty"`

	// acknowledgements are the keys of changes in the next minor release that you are prepared for, for example
	// ack-4.20-kube-1.34-api-removals-in-4.21. They are written to ConfigMap admin-acks of the cluster. The condition Upgrading names those
	// that are missing. Changeable at any time.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^ack-[45]\\\\.[0-9]+-[-._a-zA-Z0-9]+$')",message="must be the key of an acknowledgement such as ack-4.20-kube-1.34-api-removals-in-4.21"
	Acknowledgements []string `json:"acknowledgements,omitempty"`
}

// UpgradeRisk is a known risk of an update.
type UpgradeRisk struct {
	// name is the name of the risk, as the condition Upgrading has it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// TemplateUpgradeSpec is an UpgradeSpec without what belongs to one step of one cluster (CONTRACT CP-18).
// +kubebuilder:validation:MinProperties=1
type TemplateUpgradeSpec struct {
	// channel is where the cluster looks for updates and their known risks, for example stable-4.21.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')",message="must be the name of a channel such as stable-4.21"
	Channel string `json:"channel,omitempty"`
}

// UpgradeStatus is the progress of an upgrade, whoever has begun it.
// +kubebuilder:validation:MinProperties=1
type UpgradeStatus struct {
	// version is the release that the cluster is being brought to, for example 4.21.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// image is the image of that release.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`

	// startedTime is when the cluster began with it.
	// +optional
	StartedTime metav1.Time `json:"startedTime,omitempty,omitzero"`

	// progressPercentage is how much of it is done, as the version operator counts it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ProgressPercentage *int32 `json:"progressPercentage,omitempty"`
}
