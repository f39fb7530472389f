// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DiskEncryptionSpec encrypts the installation disks of hosts.
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Tang') == has(self.tangServers)",message="is required for mode Tang, and must not be set for mode TPM2",fieldPath=".tangServers"
type DiskEncryptionSpec struct {
	// mode is where the keys are: TPM2 in the host's TPM, Tang at servers of the network. Changeable before the installation.
	// +required
	Mode DiskEncryptionMode `json:"mode,omitempty"`

	// roles are those of the hosts that are encrypted: ControlPlane, Arbiter, Worker. Defaults to all. Changeable before the installation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Roles []HostRole `json:"roles,omitempty"`

	// tangServers are the Tang servers. Changeable before the installation.
	// +optional
	// +listType=map
	// +listMapKey=url
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TangServers []TangServer `json:"tangServers,omitempty"`
}

// DiskEncryptionMode is where the keys of encrypted disks are.
// +kubebuilder:validation:Enum=TPM2;Tang
type DiskEncryptionMode string

const (
	// DiskEncryptionTPM2: in the host's TPM.
	DiskEncryptionTPM2 DiskEncryptionMode = "TPM2"

	// DiskEncryptionTang: at Tang servers.
	DiskEncryptionTang DiskEncryptionMode = "Tang"
)

// TangServer is one Tang server.
type TangServer struct {
	// url is where the server is, for example http://tang.example.com:7500. Changeable before the installation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be a URL with the scheme http or https"
	URL string `json:"url,omitempty"`

	// thumbprint is that of the server's signing key, as tang-show-keys prints it. Changeable before the installation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be a thumbprint as tang-show-keys prints it: letters, digits, '-' and '_'"
	Thumbprint string `json:"thumbprint,omitempty"`
}
