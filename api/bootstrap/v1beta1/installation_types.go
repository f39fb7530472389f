// SPDX-License-Identifier: Apache-2.0

package v1beta1

// InstallationSpec says how the system is installed on the host.
// +kubebuilder:validation:MinProperties=1
type InstallationSpec struct {
	// kernelArguments are appended to the kernel's command line of the installed system, in this order, each as parameter or parameter=value.
	// They stay when MachineConfigs of the cluster change. A config's can be changed until its host is recognised.
	// Changeable before the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]][A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]-]*$')",message="must be one kernel argument without spaces, for example console=ttyS0, of letters, digits and @!#$%*()_+,./:;<=\"{}[]-"
	KernelArguments []string `json:"kernelArguments,omitempty"`

	// deletedKernelArguments are taken from the kernel's command line of the image before it is installed, each as it is there, for example
	// quiet. A config's can be changed until its host is recognised.
	// Changeable before the installation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]][A-Za-z0-9@!#$%*()_+,./:;<=\"{}\\\\[\\\\]-]*$')",message="must be one kernel argument without spaces, for example quiet, of letters, digits and @!#$%*()_+,./:;<=\"{}[]-"
	DeletedKernelArguments []string `json:"deletedKernelArguments,omitempty"`

	// ignition is an ignition config of version 3.1.0 or 3.2.0, as JSON, that is merged into that of the installed system before its first boot.
	// It is not for what MachineConfigs of the cluster manage: they win later. A config's can be changed until its host is recognised.
	// Changeable before the installation.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=262144
	Ignition string `json:"ignition,omitempty"`
}
