// SPDX-License-Identifier: Apache-2.0

package v1beta1

// StaticNetworkingSource is where static network configuration comes from.
// +kubebuilder:validation:Enum=BareMetalHosts
type StaticNetworkingSource string

// StaticNetworkingBareMetalHosts makes an NMStateConfig of the network data of every BareMetalHost that may be chosen for the Machine.
const StaticNetworkingBareMetalHosts StaticNetworkingSource = "BareMetalHosts"

// StaticNetworkingSpec says where the static network configuration of hosts comes from.
type StaticNetworkingSpec struct {
	// source is where it comes from. BareMetalHosts: every BareMetalHost of the namespace that the Metal3Machine's hostSelector matches and
	// that names a Secret with network data, in spec.preprovisioningNetworkDataName or else spec.networkData, gets an NMStateConfig, before
	// any medium is handed out. The Secret holds an nmstate document under the key nmstate or networkData. Hosts without network data use
	// DHCP. Never changeable.
	// +required
	Source StaticNetworkingSource `json:"source,omitempty"`
}
