// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ReleaseStatus is what the release image is (DESIGN D10). It stays as it was found: nothing is asked again for the same image.
// +kubebuilder:validation:MinProperties=1
type ReleaseStatus struct {
	// image is the name of the image that the rest tells of: spec.release.image, or the public image of spec.distributionVersion.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`

	// digest is what the name stood for, for example sha256:5b2a…; of the list where there are images of several architectures.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Digest string `json:"digest,omitempty"`

	// version is the version of the release, for example 4.20.4.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// kubernetesVersion is the Kubernetes version in the release, which spec.version has to be, for example v1.33.5.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// architectures are those that the image is for, in the spelling of cpuArchitecture: hosts of others cannot be installed with it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32
	Architectures []string `json:"architectures,omitempty"`
}
