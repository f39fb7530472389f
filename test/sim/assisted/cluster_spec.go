// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/utils/ptr"
)

// Annotations of an AgentClusterInstall that hold JSON.
const (
	installConfigOverrides    = "agent-install.openshift.io/install-config-overrides"
	ignoredClusterValidations = "agent-install.openshift.io/ignored-cluster-validations"
	ignoredHostValidations    = "agent-install.openshift.io/ignored-host-validations"
)

// networkTypes are the network providers that releases from 4.17 on can be installed with.
var networkTypes = []string{"", "OVNKubernetes", "CiscoACI", "Cilium", "Calico", "None"}

// checkClusterSpec refuses what the service and its webhooks refuse of a cluster that is to be installed.
func checkClusterSpec(aci *hiveext.AgentClusterInstall, arbiters int) error {
	checks := []func(*hiveext.AgentClusterInstall) error{checkNetworks, checkPlatform, checkVIPs, checkDiskEncryption, checkAnnotations}
	for _, check := range checks {
		if err := check(aci); err != nil {
			return err
		}
	}
	return checkTwoNode(aci, arbiters)
}

// checkNetworks checks every network by itself and against the others (ASSISTED 1.3).
func checkNetworks(aci *hiveext.AgentClusterInstall) error {
	networking := aci.Spec.Networking
	if !slices.Contains(networkTypes, networking.NetworkType) {
		return userError("Network type %s is not supported by the release", networking.NetworkType)
	}
	var machine, pods []string
	for _, network := range networking.MachineNetwork {
		machine = append(machine, network.CIDR)
	}
	for _, network := range networking.ClusterNetwork {
		pods = append(pods, network.CIDR)
	}
	families := ""
	var before []netip.Prefix
	for _, list := range [][]string{machine, pods, networking.ServiceNetwork} {
		found, err := checkNetworkList(list, &before)
		if err != nil {
			return err
		}
		if families != "" && found != "" && families != found {
			return userError("networks are of the IP families %s and %s: they must be the same, in the same order", families, found)
		}
		if families == "" {
			families = found
		}
	}
	if len(families) > 1 && len(machine) == 0 {
		return userError("Dual-stack cluster cannot be created with empty Machine Networks")
	}
	return checkHostPrefixes(aci)
}

// checkNetworkList returns the families of a list of networks as digits.
func checkNetworkList(list []string, before *[]netip.Prefix) (families string, err error) {
	for _, cidr := range list {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil || prefix != prefix.Masked() {
			return "", userError("%s is not a valid network CIDR", cidr)
		}
		for _, other := range *before {
			if prefix.Overlaps(other) {
				return "", userError("CIDRS %s and %s overlap", other, prefix)
			}
		}
		*before = append(*before, prefix)
		digit := "6"
		if prefix.Addr().Is4() {
			digit = "4"
		}
		families += digit
	}
	if families == "44" || families == "66" {
		return "", userError("Single-stack cluster cannot contain multiple networks of a kind")
	}
	return families, nil
}

func checkHostPrefixes(aci *hiveext.AgentClusterInstall) error {
	hosts := 4
	if aci.Spec.ProvisionRequirements.ControlPlaneAgents == 1 {
		hosts = 1
	}
	for _, network := range aci.Spec.Networking.ClusterNetwork {
		prefix, err := netip.ParsePrefix(network.CIDR)
		if err != nil {
			return userError("%s is not a valid network CIDR", network.CIDR)
		}
		bits, most := int(network.HostPrefix)-prefix.Bits(), prefix.Addr().BitLen()-7
		switch {
		case int(network.HostPrefix) > most:
			return userError("Host prefix, now %d, must be less than or equal to %d to allow at least 128 addresses", network.HostPrefix, most)
		case bits < 0 || bits < 31 && 1<<bits < hosts:
			return userError("Cluster network CIDR prefix %d does not contain enough addresses for %d hosts each one with %d prefix",
				prefix.Bits(), hosts, network.HostPrefix)
		case prefix.Addr().Is6() && network.HostPrefix != 64:
			return userError("cluster network host subnetwork prefix must be 64 for IPv6 networks")
		}
	}
	return nil
}

// checkPlatform checks that the platform fits the topology and who manages the network.
func checkPlatform(aci *hiveext.AgentClusterInstall) error {
	single := aci.Spec.ProvisionRequirements.ControlPlaneAgents == 1
	userManaged := ptr.Deref(aci.Spec.Networking.UserManagedNetworking, single)
	switch platform := aci.Spec.PlatformType; {
	case single && !userManaged:
		return userError("UserManagedNetworking must be set to true with SNO")
	case single && platform == hiveext.BareMetalPlatformType:
		return userError("Single node cluster is not supported alongside baremetal platform")
	case userManaged && platform == hiveext.BareMetalPlatformType:
		return userError("Can't set baremetal platform with user-managed-networking enabled")
	case !userManaged && (platform == hiveext.NonePlatformType || platform == hiveext.ExternalPlatformType):
		return userError("Can't set %s platform with user-managed-networking disabled", platform)
	case aci.Spec.LoadBalancer != nil && aci.Spec.LoadBalancer.Type == hiveext.LoadBalancerTypeUserManaged && userManaged:
		return userError("load balancer type can only be set on platform baremetal")
	}
	return nil
}

// checkVIPs checks virtual addresses against each other and the machine networks.
func checkVIPs(aci *hiveext.AgentClusterInstall) error {
	api, ingress := virtualIPs(aci.Spec.APIVIPs, aci.Spec.APIVIP), virtualIPs(aci.Spec.IngressVIPs, aci.Spec.IngressVIP)
	if len(api) != len(ingress) {
		return userError("configuration must include the same number of apiVIPs (got %d) and ingressVIPs (got %d)", len(api), len(ingress))
	}
	if len(api) > 0 && ptr.Deref(aci.Spec.Networking.UserManagedNetworking, false) {
		return userError("API VIPs cannot be set with User Managed Networking")
	}
	external := aci.Spec.LoadBalancer != nil && aci.Spec.LoadBalancer.Type == hiveext.LoadBalancerTypeUserManaged
	for i := range api {
		a, errAPI := netip.ParseAddr(api[i])
		b, errIngress := netip.ParseAddr(ingress[i])
		switch {
		case errAPI != nil || errIngress != nil:
			return userError("Could not parse VIP ip %s or %s", api[i], ingress[i])
		case a.Is4() != b.Is4():
			return userError("VIPs %s and %s are of two IP families", a, b)
		case a == b && !external:
			return userError("The IP address %q appears multiple times in apiVIPs and ingressVIPs", a)
		}
		if external || len(aci.Spec.Networking.MachineNetwork) == 0 {
			continue
		}
		for _, vip := range []netip.Addr{a, b} {
			if !inMachineNetwork(aci, vip) {
				return userError("vip %s does not belong to machine-network-cidr", vip)
			}
		}
	}
	return nil
}

func inMachineNetwork(aci *hiveext.AgentClusterInstall, vip netip.Addr) bool {
	return slices.ContainsFunc(aci.Spec.Networking.MachineNetwork, func(network hiveext.MachineNetworkEntry) bool {
		prefix, err := netip.ParsePrefix(network.CIDR)
		return err == nil && prefix.Contains(vip)
	})
}

func checkDiskEncryption(aci *hiveext.AgentClusterInstall) error {
	encryption := aci.Spec.DiskEncryption
	if encryption == nil || ptr.Deref(encryption.Mode, "") != "tang" {
		return nil
	}
	var servers []struct{ URL, Thumbprint string }
	if err := json.Unmarshal([]byte(encryption.TangServers), &servers); err != nil || len(servers) == 0 {
		return userError("Setting Tang mode but tang_servers isn't set")
	}
	for _, server := range servers {
		if server.URL == "" || server.Thumbprint == "" {
			return userError("Tang thumbprint isn't set")
		}
	}
	return nil
}

func checkAnnotations(aci *hiveext.AgentClusterInstall) error {
	targets := map[string]any{
		installConfigOverrides: &map[string]any{}, ignoredClusterValidations: &[]string{}, ignoredHostValidations: &[]string{},
	}
	for _, key := range []string{installConfigOverrides, ignoredClusterValidations, ignoredHostValidations} {
		value, ok := aci.Annotations[key]
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(value), targets[key]); err != nil {
			return userError("Failed to parse '%s' annotation: %v", key, err)
		}
	}
	return nil
}

// hasMachineAPI says whether the installed cluster has Machines of its own for its hosts, as every cluster on platform BareMetal has whose
// install-config does not leave the capability out (ASSISTED fact 13). What is no JSON is refused elsewhere.
func hasMachineAPI(aci *hiveext.AgentClusterInstall) bool {
	single := aci.Spec.ProvisionRequirements.ControlPlaneAgents == 1
	if platformOf(aci, ptr.Deref(aci.Spec.Networking.UserManagedNetworking, single)) != hiveext.BareMetalPlatformType {
		return false
	}
	var overrides struct {
		Capabilities struct {
			Baseline   configv1.ClusterVersionCapabilitySet `json:"baselineCapabilitySet"`
			Additional []configv1.ClusterVersionCapability  `json:"additionalEnabledCapabilities"`
		} `json:"capabilities"`
	}
	if value := aci.Annotations[installConfigOverrides]; value != "" {
		if err := json.Unmarshal([]byte(value), &overrides); err != nil {
			return false
		}
	}
	asked := overrides.Capabilities
	baseline := configv1.ClusterVersionCapabilitySets[cmp.Or(asked.Baseline, configv1.ClusterVersionCapabilitySetCurrent)]
	return slices.Contains(slices.Concat(baseline, asked.Additional), configv1.ClusterVersionCapabilityMachineAPI)
}
