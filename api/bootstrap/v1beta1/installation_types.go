// SPDX-License-Identifier: Apache-2.0

package v1beta1

// InstallationSpec says how the system is installed on the host.
// +kubebuilder:validation:MinProperties=1
type InstallationSpec struct {
	// kernelArguments are appended to the kernel's command line of the installed system, in this order, each as parameter or parameter=value.
	// They stay when MachineConfigs of the cluster change.
	// Changeable until the host is recognised.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]][A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]-]*$')",message="must be one kernel argument without spaces, for example console=ttyS0, of letters, digits and @!#$%*()_+,./:;<=\"{}[]-"
	KernelArguments []string `json:"kernelArguments,omitempty"`

	// deletedKernelArguments are taken from the kernel's command line of the image before it is installed, each as it is there, for example
	// quiet.
	// Changeable until the host is recognised.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]][A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]-]*$')",message="must be one kernel argument without spaces, for example quiet, of letters, digits and @!#$%*()_+,./:;<=\"{}[]-"
	DeletedKernelArguments []string `json:"deletedKernelArguments,omitempty"`

	// ignition is an ignition config of version 3.1.0 or 3.2.0, as JSON, that is merged into that of the installed system before its first
	// boot. It is not for what MachineConfigs of the cluster manage: they win later. Changeable until the host is recognised.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=262144
	Ignition string `json:"ignition,omitempty"`

	// rootDeviceHints choose the disk that the system is installed on, among those that the host reports. They win over the
	// spec.rootDeviceHints of its BareMetalHost; with neither, the Assisted Installer chooses. A host without an eligible disk that meets all
	// hints is not bound, and nothing is written to it.
	// Changeable until the host is bound.
	// +optional
	RootDeviceHints RootDeviceHints `json:"rootDeviceHints,omitempty,omitzero"`
}

// RootDeviceHints describe a disk; the disk has to meet all that are given. They have the form of a BareMetalHost's.
// +kubebuilder:validation:MinProperties=1
type RootDeviceHints struct {
	// deviceName is the kernel's name of the disk, for example /dev/sda, or a link to it below /dev/disk/by-path or /dev/disk/by-id. Kernel's
	// names may be others after the next boot: prefer links. It must be exactly that of the disk.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^/dev/[A-Za-z0-9][A-Za-z0-9._:,=+@/-]*$')",message="must be the path of a device, for example /dev/sda or /dev/disk/by-path/pci-0000:00:1f.2-ata-1"
	DeviceName string `json:"deviceName,omitempty"`

	// hctl is the SCSI address of the disk: host, channel, target and LUN, for example 0:0:1:0. It must be exactly that of the disk.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+:[0-9]+:[0-9]+:[0-9]+$')",message="must be four numbers separated by colons, for example 0:0:1:0"
	HCTL string `json:"hctl,omitempty"`

	// model is a part of the model's name, in any case.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`

	// vendor is a part of the vendor's name, in any case.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`

	// serialNumber is the disk's serial number, whole and in any case.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`

	// minSizeGigabytes is how large the disk is at least, in GiB.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	MinSizeGigabytes int32 `json:"minSizeGigabytes,omitempty"`

	// wwn is the World Wide Name of the disk, with or without its vendor extension, for example 0x5000c500a0b1c2d3.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._:-]+$')",message="must be a World Wide Name, for example 0x5000c500a0b1c2d3"
	WWN string `json:"wwn,omitempty"`

	// wwnWithExtension is the World Wide Name of the disk with its vendor extension.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._:-]+$')",message="must be a World Wide Name with its extension, for example 0x600508b1001c4b31a1b2c3d4e5f60718"
	WWNWithExtension string `json:"wwnWithExtension,omitempty"`

	// wwnVendorExtension is the vendor extension of the World Wide Name of the disk.
	// Changeable until the host is bound.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._:-]+$')",message="must be the extension of a World Wide Name, for example 0xa1b2c3d4e5f60718"
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`

	// rotational is true for disks with spinning media and false for all others.
	// Changeable until the host is bound.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}
