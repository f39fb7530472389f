// SPDX-License-Identifier: Apache-2.0

package v1beta1

// NetworkType is the cluster network's provider.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self in ['OVNKubernetes', 'Cilium', 'Calico', 'CiscoACI', 'None']",message="must be OVNKubernetes, Cilium, Calico, CiscoACI or None: OpenShiftSDN is in no release from 4.17 on"
type NetworkType string

// NetworkTypeOVNKubernetes is the default cluster network of OpenShift.
const NetworkTypeOVNKubernetes NetworkType = "OVNKubernetes"

// NetworkingSpec are the networks of the cluster. With two IP families every kind of network has one network per family, in one order: that
// of apiVIPs. No two networks may overlap.
// +kubebuilder:validation:MinProperties=1
type NetworkingSpec struct {
	// machineNetwork are the CIDRs of the hosts' networks, one per IP family. A cluster with two families needs it. Changeable before the
	// installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a CIDR such as 192.0.2.0/24"
	MachineNetwork []string `json:"machineNetwork,omitempty"`

	// clusterNetwork are the networks of Pods, one per IP family. Defaults to spec.clusterNetwork.pods of the Cluster, and to 10.128.0.0/14
	// where that is not set either. Changeable before the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	ClusterNetwork []ClusterNetworkEntry `json:"clusterNetwork,omitempty"`

	// serviceNetwork are the CIDRs of Services, one per IP family. Defaults to spec.clusterNetwork.services of the Cluster, and to
	// 172.30.0.0/16 where that is not set either. Changeable before the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a CIDR such as 172.30.0.0/16"
	ServiceNetwork []string `json:"serviceNetwork,omitempty"`

	// networkType is the provider of the cluster network: OVNKubernetes, Cilium, Calico, CiscoACI or None. All but OVNKubernetes are installed
	// by manifests of the user. Defaults to OVNKubernetes. Changeable before the installation.
	// +optional
	NetworkType NetworkType `json:"networkType,omitempty"`
}

// ClusterNetworkEntry is one network of Pods.
type ClusterNetworkEntry struct {
	// cidr is the network, for example 10.128.0.0/14. Changeable before the installation.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a CIDR such as 10.128.0.0/14"
	CIDR string `json:"cidr,omitempty"`

	// hostPrefix is the prefix length of the part of the network that every Node gets: longer than that of cidr, at most 25 for IPv4, and 64
	// for IPv6. Defaults to 23 for IPv4 and to 64 for IPv6. Changeable before the installation.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HostPrefix int32 `json:"hostPrefix,omitempty"`
}

// LoadBalancerSpec says who balances the load of the API and the ingress.
type LoadBalancerSpec struct {
	// type is ClusterManaged, where the hosts announce the virtual IP addresses, or UserManaged, where apiVIPs and ingressVIPs are addresses
	// of a load balancer of the user: they may be outside the machine network, and API and ingress may have the same. Changeable before the
	// installation.
	// +required
	Type LoadBalancerType `json:"type,omitempty"`
}

// LoadBalancerType is who balances the load of the API and the ingress.
// +kubebuilder:validation:Enum=ClusterManaged;UserManaged
type LoadBalancerType string

const (
	// LoadBalancerClusterManaged: the cluster itself.
	LoadBalancerClusterManaged LoadBalancerType = "ClusterManaged"

	// LoadBalancerUserManaged: a load balancer of the user.
	LoadBalancerUserManaged LoadBalancerType = "UserManaged"
)
