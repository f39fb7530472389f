// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DiscoverySpec is what is added to the system that the host runs during discovery.
// +kubebuilder:validation:MinProperties=1
type DiscoverySpec struct {
	// kernelArguments are appended to the kernel's command line of the live ISO, in this order, each as parameter or parameter=value. A value
	// with spaces is quoted. The space for them in the ISO is limited to about 1 KiB. The installed system has its own: see
	// installation.kernelArguments.
	// Never changeable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([^ \\t\\n\\r\"]|\"[^\"\\n\\r]*\")+$')",message="must be one kernel argument, for example console=ttyS0 or name=\"a b\": spaces in double quotes only"
	KernelArguments []string `json:"kernelArguments,omitempty"`

	// ignition is an ignition config of version 3.1.0 or 3.2.0, as JSON, that is merged into that of the discovery image. Together they may
	// have up to 256 KiB when compressed. The installed system does not get it: see installation.ignition. Never changeable.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=262144
	Ignition string `json:"ignition,omitempty"`
}
