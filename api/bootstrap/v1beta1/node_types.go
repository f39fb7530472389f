// SPDX-License-Identifier: Apache-2.0

package v1beta1

// NodeName is the rule by which a Node gets its name.
// +kubebuilder:validation:Enum=MachineName;BareMetalHost
type NodeName string

const (
	// NodeNameMachine names the Node after its Machine (DESIGN D7).
	NodeNameMachine NodeName = "MachineName"

	// NodeNameBareMetalHost names the Node after the BareMetalHost that it runs on (DESIGN D7).
	NodeNameBareMetalHost NodeName = "BareMetalHost"
)

// NodeRegistrationSpec says how the host registers as a Node.
// +kubebuilder:validation:MinProperties=1
type NodeRegistrationSpec struct {
	// name is the rule by which the Node gets its name. Defaults to MachineName.
	// Changeable until the host is recognised.
	// +optional
	Name NodeName `json:"name,omitempty"`

	// labels are put on the Node besides those that the providers need.
	// Changeable until the host is recognised.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Labels []NodeLabel `json:"labels,omitempty"`

	// machineConfigPool is the MachineConfigPool of the installed cluster that the Node joins with. Defaults to worker. A host of a custom
	// pool is not part of the first installation, which knows no custom pools: it joins when the cluster is installed. Workers only.
	// Changeable until the host is recognised.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a MachineConfigPool: lower-case letters, digits and '-'"
	// +kubebuilder:validation:XValidation:rule="self != 'master' && self != 'worker' && self != 'arbiter'",message="must be the name of a custom pool: leave it out for a Machine's own one"
	MachineConfigPool string `json:"machineConfigPool,omitempty"`
}

// NodeLabel is one label of a Node.
type NodeLabel struct {
	// key is the label's key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="must be a label key: an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' and '.'"
	// +kubebuilder:validation:XValidation:rule="self != 'metal3.io/uuid'",message="metal3.io/uuid is set by the provider: remove it"
	Key string `json:"key,omitempty"`

	// value is the label's value; it may be empty.
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="must be a label value: up to 63 letters, digits, '-', '_' and '.'"
	Value *string `json:"value,omitempty"`
}
