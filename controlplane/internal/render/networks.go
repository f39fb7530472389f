// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	// hostPrefixIPv4 and hostPrefixIPv6 are the default sizes of a Node's part of the Pod network; the installer takes no other one for IPv6.
	hostPrefixIPv4 = 23
	hostPrefixIPv6 = 64

	// minClusterBits and minMachineBits make room for the 128 addresses that assisted-service wants in networks of Pods and Services, and in a
	// Node's part, and for the 16 of the hosts' networks, or 4 for a single host.
	minClusterBits = 7
	minMachineBits = 4
	minSingleBits  = 2

	// minNodes is for how many Nodes the service wants room in the Pod network, unless there is a single one.
	minNodes = 4

	// Networks that assisted-service uses when it is told none.
	defaultClusterNetwork = "10.128.0.0/14"
	defaultServiceNetwork = "172.30.0.0/16"
)

// Network is one network of a cluster, with the field that asked for it.
type Network struct {
	CIDR string
	// HostPrefix is the prefix length of a Node's part; 0 for the default. Only networks of Pods have it.
	HostPrefix int32
	// Path and HostPrefixPath name the fields.
	Path, HostPrefixPath *field.Path
}

// Networks are the networks of a cluster by kind, as they are installed, and its virtual addresses.
type Networks struct {
	Machine, Cluster, Service []Network
	// Replicas is the number of control-plane hosts; 0 in a template, see ofTemplate.
	Replicas int32

	install controlplanev1.InstallSpec
	path    *field.Path
	// complete: the Cluster is known, so that a kind without a network has that of the service.
	complete bool
}

// NetworksOf gathers the networks of an installation. The Cluster, whose networks are the defaults, is nil at admission. path is that of
// install.
func NetworksOf(install controlplanev1.InstallSpec, replicas int32, cluster *clusterv1.Cluster, path *field.Path) Networks {
	at := path.Child("networking")
	n := Networks{
		Machine:  listOf(install.Networking.MachineNetwork, at.Child("machineNetwork")),
		Service:  listOf(install.Networking.ServiceNetwork, at.Child("serviceNetwork")),
		Replicas: replicas,
		install:  install,
		path:     path,
		complete: cluster != nil,
	}
	for i, entry := range install.Networking.ClusterNetwork {
		at := at.Child("clusterNetwork").Index(i)
		n.Cluster = append(
			n.Cluster, Network{CIDR: entry.CIDR, HostPrefix: entry.HostPrefix, Path: at.Child("cidr"), HostPrefixPath: at.Child("hostPrefix")},
		)
	}
	if cluster == nil {
		return n
	}
	at = field.NewPath("Cluster", "spec", "clusterNetwork")
	if len(n.Cluster) == 0 {
		n.Cluster = listOf(cluster.Spec.ClusterNetwork.Pods.CIDRBlocks, at.Child("pods", "cidrBlocks"))
	}
	if len(n.Service) == 0 {
		n.Service = listOf(cluster.Spec.ClusterNetwork.Services.CIDRBlocks, at.Child("services", "cidrBlocks"))
	}
	return n
}

func listOf(cidrs []string, path *field.Path) []Network {
	networks := make([]Network, 0, len(cidrs))
	for i, cidr := range cidrs {
		networks = append(networks, Network{CIDR: cidr, Path: path.Index(i), HostPrefixPath: path.Index(i)})
	}
	return networks
}

// Render is the networking of the AgentClusterInstall.
func (n Networks) Render() hiveext.Networking {
	networkType := n.install.Networking.NetworkType
	if networkType == "" {
		networkType = controlplanev1.NetworkTypeOVNKubernetes
	}
	networking := hiveext.Networking{NetworkType: string(networkType)}
	for _, network := range n.Machine {
		networking.MachineNetwork = append(networking.MachineNetwork, hiveext.MachineNetworkEntry{CIDR: network.CIDR})
	}
	for _, network := range n.Cluster {
		networking.ClusterNetwork = append(
			networking.ClusterNetwork, hiveext.ClusterNetworkEntry{CIDR: network.CIDR, HostPrefix: network.hostPrefix()},
		)
	}
	for _, network := range n.Service {
		networking.ServiceNetwork = append(networking.ServiceNetwork, network.CIDR)
	}
	return networking
}

// hostPrefix is the prefix length of a Node's part, with its default.
func (n Network) hostPrefix() int32 {
	prefix, err := netip.ParsePrefix(n.CIDR)
	switch {
	case n.HostPrefix != 0:
		return n.HostPrefix
	case err == nil && prefix.Addr().Is6():
		return hostPrefixIPv6
	default:
		return hostPrefixIPv4
	}
}

// ofTemplate: these are the networks of a template, to which the patches of a ClusterClass may add further ones, and whose Cluster says how
// many hosts there are. Only what is wrong whatever they add is a problem.
func (n Networks) ofTemplate() bool { return n.Replicas == 0 }

// Problems says what assisted-service or the installer would refuse. What is no CIDR is left to the CRDs.
func (n Networks) Problems() field.ErrorList {
	machineBits := minMachineBits
	if n.Replicas <= 1 {
		machineBits = minSingleBits
	}
	errs := slices.Concat(sizes(n.Machine, machineBits), sizes(n.Cluster, minClusterBits), sizes(n.Service, minClusterBits))
	for _, network := range n.Cluster {
		errs = append(errs, n.hostPrefixProblems(network)...)
	}
	if n.complete {
		n.Cluster = orDefault(n.Cluster, defaultClusterNetwork, n.path.Child("networking", "clusterNetwork"))
		n.Service = orDefault(n.Service, defaultServiceNetwork, n.path.Child("networking", "serviceNetwork"))
	}
	errs = append(errs, n.familyProblems()...)
	return append(errs, overlaps(slices.Concat(n.Machine, n.Cluster, n.Service))...)
}

func orDefault(networks []Network, cidr string, path *field.Path) []Network {
	if len(networks) > 0 {
		return networks
	}
	return []Network{{CIDR: cidr, Path: path}}
}

// sizes checks that networks are networks and have room for addresses of a number of bits.
func sizes(networks []Network, bits int) field.ErrorList {
	var errs field.ErrorList
	for _, network := range networks {
		prefix, err := netip.ParsePrefix(network.CIDR)
		if err != nil {
			continue
		}
		longest := prefix.Addr().BitLen() - bits
		switch {
		case prefix.Masked() != prefix:
			errs = append(errs, field.Invalid(network.Path, network.CIDR, "must be the address of a network: "+prefix.Masked().String()))
		case prefix.Addr().IsUnspecified() && (prefix.Addr().Is4() || prefix.Bits() == 0):
			// Not so ::/64, which holds ::1: it is the only network of IPv6 that every machine is in, and the one of clusters in the sandbox.
			errs = append(errs, field.Invalid(network.Path, network.CIDR, "must not be the unspecified network"))
		case prefix.Bits() > longest:
			errs = append(errs, field.Invalid(network.Path, network.CIDR,
				fmt.Sprintf("must have room for %d addresses: a prefix length of at most %d", 1<<bits, longest)))
		}
	}
	return errs
}

// hostPrefixProblems checks a Node's part of a network of Pods.
func (n Networks) hostPrefixProblems(network Network) field.ErrorList {
	prefix, err := netip.ParsePrefix(network.CIDR)
	if err != nil {
		return nil
	}
	nodes := max(minNodes, int(n.Replicas))
	if n.Replicas <= 1 {
		nodes = 1
	}
	hostPrefix := int(network.hostPrefix())
	path, longest := network.HostPrefixPath, prefix.Addr().BitLen()-minClusterBits
	switch {
	case prefix.Addr().Is6() && hostPrefix != hostPrefixIPv6:
		return field.ErrorList{
			field.Invalid(path, hostPrefix, fmt.Sprintf("must be %d for IPv6, which is all that the installer takes", hostPrefixIPv6)),
		}
	case hostPrefix > longest:
		return field.ErrorList{field.Invalid(path, hostPrefix, fmt.Sprintf("must be at most %d, so that a Node has 128 addresses", longest))}
	case hostPrefix < prefix.Bits():
		return field.ErrorList{
			field.Invalid(path, hostPrefix, fmt.Sprintf("must be at least %d, the prefix length of %s", prefix.Bits(), network.CIDR)),
		}
	case hostPrefix-prefix.Bits() < 32 && 1<<(hostPrefix-prefix.Bits()) < nodes:
		return field.ErrorList{
			field.Invalid(path, hostPrefix, fmt.Sprintf("%s has room for %d parts of this prefix length: must be for at least %d Nodes",
				network.CIDR, 1<<(hostPrefix-prefix.Bits()), nodes)),
		}
	default:
		return nil
	}
}

// familyProblems checks that every kind has the same IP families in the same order, which is that of the first kind that is set.
func (n Networks) familyProblems() field.ErrorList {
	names := []string{"machineNetwork", "clusterNetwork", "serviceNetwork"}
	var errs field.ErrorList
	var wanted []string
	from := ""
	for i, networks := range [][]Network{n.Machine, n.Cluster, n.Service} {
		families, ok := familiesOf(networks)
		switch {
		case !ok || len(families) == 0:
			continue
		case len(families) == 2 && families[0] == families[1]:
			errs = append(
				errs,
				field.Invalid(networks[1].Path, networks[1].CIDR, "must be of another IP family than the first one: one IPv4 and one IPv6 network"),
			)
			continue
		case wanted == nil:
			wanted, from = families, names[i]
		case !n.sameFamilies(families, wanted):
			last := networks[len(networks)-1]
			errs = append(
				errs,
				field.Invalid(
					last.Path, cidrs(networks), fmt.Sprintf("must have the IP families of %s in their order: %s", from, strings.Join(wanted, ", ")),
				),
			)
		}
	}
	if len(wanted) == 2 && len(n.Machine) == 0 && !n.ofTemplate() {
		errs = append(errs, field.Required(n.path.Child("networking", "machineNetwork"), "a cluster with two IP families needs it"))
	}
	return append(errs, n.addressProblems(wanted)...)
}

// sameFamilies compares the IP families of two kinds of networks, and their order.
func (n Networks) sameFamilies(a, b []string) bool {
	if n.ofTemplate() {
		both := min(len(a), len(b))
		return slices.Equal(a[:both], b[:both])
	}
	return slices.Equal(a, b)
}

// addressProblems checks that virtual addresses are of the networks' families, in their order.
func (n Networks) addressProblems(families []string) field.ErrorList {
	var errs field.ErrorList
	for i, vip := range n.install.APIVIPs {
		address, err := netip.ParseAddr(vip)
		if err != nil || len(families) == 0 || i >= len(families) && n.ofTemplate() {
			continue
		}
		if i >= len(families) || family(address) != families[i] {
			errs = append(errs, field.Invalid(n.path.Child("apiVIPs").Index(i), vip,
				"must be of the IP families of the networks in their order: "+strings.Join(families, ", ")))
		}
	}
	return errs
}

func familiesOf(networks []Network) (families []string, ok bool) {
	for _, network := range networks {
		prefix, err := netip.ParsePrefix(network.CIDR)
		if err != nil {
			return nil, false
		}
		families = append(families, family(prefix.Addr()))
	}
	return families, true
}

func family(address netip.Addr) string {
	if address.Unmap().Is4() {
		return "IPv4"
	}
	return "IPv6"
}

func cidrs(networks []Network) string {
	names := make([]string, 0, len(networks))
	for _, network := range networks {
		names = append(names, network.CIDR)
	}
	return strings.Join(names, ", ")
}

// overlaps checks every network against those before it.
func overlaps(networks []Network) field.ErrorList {
	var errs field.ErrorList
	for i, network := range networks {
		prefix, err := netip.ParsePrefix(network.CIDR)
		if err != nil {
			continue
		}
		for _, before := range networks[:i] {
			other, err := netip.ParsePrefix(before.CIDR)
			if err == nil && prefix.Overlaps(other) {
				errs = append(errs, field.Invalid(network.Path, network.CIDR, fmt.Sprintf("must not overlap with %s: %s", before.Path, before.CIDR)))
			}
		}
	}
	return errs
}

// networksOf are the networks of a control plane's cluster.
func networksOf(spec controlplanev1.OpenshiftAssistedControlPlaneSpec, cluster *clusterv1.Cluster) Networks {
	return NetworksOf(spec.Install, ptr.Deref(spec.Replicas, 0), cluster, field.NewPath("spec", "install"))
}

// NetworkProblem says why the networks of a control plane and its Cluster cannot be installed together; empty when they can.
func NetworkProblem(spec controlplanev1.OpenshiftAssistedControlPlaneSpec, cluster *clusterv1.Cluster) string {
	problems := networksOf(spec, cluster).Problems()
	if len(problems) == 0 {
		return ""
	}
	return problems.ToAggregate().Error()
}
