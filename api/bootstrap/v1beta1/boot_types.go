// SPDX-License-Identifier: Apache-2.0

package v1beta1

// BootMode is the way in which the discovery image reaches a host.
// +kubebuilder:validation:Enum=LiveISO;UserData
type BootMode string

const (
	// BootModeLiveISO boots the host from the InfraEnv's live ISO through the BMC's virtual media (DESIGN D3).
	BootModeLiveISO BootMode = "LiveISO"

	// BootModeUserData boots the host from the disk image of the infrastructure machine, with the InfraEnv's discovery ignition as user
	// data (DESIGN D3).
	BootModeUserData BootMode = "UserData"
)

// ImageType is how much of the operating system is in a live ISO.
// +kubebuilder:validation:Enum=Minimal;Full
type ImageType string

const (
	// ImageTypeMinimal is a live ISO that downloads its root file system when it boots.
	ImageTypeMinimal ImageType = "Minimal"

	// ImageTypeFull is a live ISO that holds its root file system.
	ImageTypeFull ImageType = "Full"
)

// BootSpec says how the host boots the discovery image.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'UserData' || !has(self.imageType)",fieldPath=".imageType",message="must not be set with mode UserData: it is the type of a live ISO"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'UserData' || !has(self.osImageVersion)",fieldPath=".osImageVersion",message="must not be set with mode UserData: the version is that of your disk image"
type BootSpec struct {
	// mode is the way in which the discovery image reaches the host. Defaults to LiveISO: the InfraEnv's live ISO takes the place of the
	// image of the Metal3Machine. With UserData the image of the Metal3Machine stays, a CoreOS disk image of yours, and the bootstrap data
	// is the discovery ignition. A config's spec is taken once, when its boot media are made: change the template and replace the Machine.
	// Never changeable.
	// +optional
	Mode BootMode `json:"mode,omitempty"`

	// imageType is how much of the operating system is in the live ISO. Minimal hosts download the rest when they boot; Full ISOs are some
	// 1 GiB large. Defaults to what assisted-service makes by default.
	// Never changeable.
	// +optional
	ImageType ImageType `json:"imageType,omitempty"`

	// osImageVersion is the version of the operating system in the live ISO: an openshiftVersion among spec.osImages of the
	// AgentServiceConfig, for example 4.20. Defaults to the one of the release that the cluster runs and, before it is installed, the
	// newest one for the architecture.
	// Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+([.][0-9]+)?(-[0-9A-Za-z.-]+)?$')",message="must be a version of the AgentServiceConfig's osImages, for example 4.20"
	OSImageVersion string `json:"osImageVersion,omitempty"`
}
