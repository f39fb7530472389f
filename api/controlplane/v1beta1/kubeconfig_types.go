// SPDX-License-Identifier: Apache-2.0

package v1beta1

// KubeconfigSpec says what the Secret <cluster>-kubeconfig holds (DESIGN D34).
// +kubebuilder:validation:MinProperties=1
type KubeconfigSpec struct {
	// credential is ServiceAccount, the default, or Installer. With ServiceAccount the Secret holds a token of the ServiceAccount cluster-api,
	// in namespace openshift-assisted-capi of the installed cluster, which is valid for days and renewed at half of that; the installer's
	// credential is used until the cluster is installed and whenever no token can be had. With Installer it is always used: it is valid for
	// ten years. Changeable at any time.
	// +optional
	Credential KubeconfigCredential `json:"credential,omitempty"`
}

// KubeconfigCredential is a kind of credential.
// +kubebuilder:validation:Enum=ServiceAccount;Installer
type KubeconfigCredential string

const (
	// KubeconfigServiceAccount is a token of a ServiceAccount, which is renewed.
	KubeconfigServiceAccount KubeconfigCredential = "ServiceAccount"

	// KubeconfigInstaller is the client certificate of the installer's administrator.
	KubeconfigInstaller KubeconfigCredential = "Installer"
)
