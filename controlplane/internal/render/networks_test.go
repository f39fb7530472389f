// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

func TestNetworkProblems(t *testing.T) {
	pods := func(cidr string, prefix int32) []controlplanev1.ClusterNetworkEntry {
		return []controlplanev1.ClusterNetworkEntry{{CIDR: cidr, HostPrefix: prefix}}
	}
	type networking = controlplanev1.NetworkingSpec
	tests := []struct {
		name       string
		networking networking
		vips       []string
		replicas   int32
		want       string // none when there is no problem
	}{
		{name: "nothing"},
		{
			name: "one family",
			networking: networking{
				MachineNetwork: []string{"192.0.2.0/24"}, ClusterNetwork: pods("10.128.0.0/14", 0), ServiceNetwork: []string{"172.30.0.0/16"},
			},
			vips:     []string{"192.0.2.5"},
			replicas: 3,
		},
		{
			name: "IPv6 only",
			networking: networking{
				MachineNetwork: []string{"2001:db8::/64"}, ClusterNetwork: pods("fd01::/48", 64), ServiceNetwork: []string{"fd02::/112"},
			},
			vips:     []string{"2001:db8::5"},
			replicas: 3,
		},
		{name: "IPv6 first", networking: networking{
			MachineNetwork: []string{"2001:db8::/64", "192.0.2.0/24"}, ClusterNetwork: append(pods("fd01::/48", 0), pods("10.128.0.0/14", 0)...),
			ServiceNetwork: []string{"fd02::/112", "172.30.0.0/16"},
		}, vips: []string{"2001:db8::5", "192.0.2.5"}, replicas: 3},
		{
			name: "one address for two families", networking: networking{MachineNetwork: []string{"192.0.2.0/24", "2001:db8::/64"}},
			vips: []string{"192.0.2.5"}, replicas: 3,
		},
		{
			name:       "a small network for one host",
			networking: networking{MachineNetwork: []string{"192.0.2.0/30"}, ClusterNetwork: pods("10.128.0.0/23", 0)}, replicas: 1,
		},
		{
			"a host's address", networking{MachineNetwork: []string{"192.0.2.1/24"}}, nil, 3,
			"machineNetwork[0]: Invalid value: \"192.0.2.1/24\": must be the address of a network: 192.0.2.0/24",
		},
		{
			"a small machine network", networking{MachineNetwork: []string{"192.0.2.0/29"}}, nil, 3,
			"room for 16 addresses: a prefix length of at most 28",
		},
		{"a small Service network", networking{ServiceNetwork: []string{"172.30.0.0/26"}}, nil, 3, "serviceNetwork[0]"},
		{"no network", networking{ServiceNetwork: []string{"0.0.0.0/8"}}, nil, 3, "unspecified"},
		{
			"a Node without addresses", networking{ClusterNetwork: pods("10.128.0.0/14", 26)}, nil, 3,
			"clusterNetwork[0].hostPrefix: Invalid value: 26: must be at most 25",
		},
		{"a part larger than the network", networking{ClusterNetwork: pods("10.128.0.0/14", 13)}, nil, 3, "must be at least 14"},
		{
			"room for two Nodes", networking{ClusterNetwork: pods("10.128.0.0/22", 23)}, nil, 3,
			"room for 2 parts of this prefix length: must be for at least 4",
		},
		{"another prefix for IPv6", networking{ClusterNetwork: pods("fd01::/48", 63)}, nil, 3, "must be 64 for IPv6"},
		{
			"two of one family", networking{MachineNetwork: []string{"192.0.2.0/24", "198.51.100.0/24"}}, nil, 3,
			"machineNetwork[1]: Invalid value: \"198.51.100.0/24\": must be of another IP family",
		},
		{
			"families in another order",
			networking{MachineNetwork: []string{"192.0.2.0/24", "2001:db8::/64"}, ServiceNetwork: []string{"fd02::/112", "172.30.0.0/16"}}, nil, 3,
			"serviceNetwork[1]: Invalid value: \"fd02::/112, 172.30.0.0/16\": must have the IP families of machineNetwork in their order: IPv4, " +
				"IPv6",
		},
		{
			"another family", networking{MachineNetwork: []string{"2001:db8::/64"}, ClusterNetwork: pods("10.128.0.0/14", 0)}, nil, 3,
			"clusterNetwork[0].cidr",
		},
		{
			"two families without machine networks", networking{ServiceNetwork: []string{"172.30.0.0/16", "fd02::/112"}}, nil, 3,
			"machineNetwork: Required value: a cluster with two IP families needs it",
		},
		{
			"an address of another family", networking{MachineNetwork: []string{"192.0.2.0/24"}}, []string{"2001:db8::5"}, 3,
			"apiVIPs[0]: Invalid value: \"2001:db8::5\": must be of the IP families of the networks",
		},
		{"an address too many", networking{MachineNetwork: []string{"192.0.2.0/24"}}, []string{"192.0.2.5", "2001:db8::5"}, 3, "apiVIPs[1]"},
		{"an overlap", networking{MachineNetwork: []string{"10.130.0.0/16"}, ClusterNetwork: pods("10.128.0.0/14", 0)}, nil, 3,
			"clusterNetwork[0].cidr: Invalid value: \"10.128.0.0/14\": must not overlap with install.networking.machineNetwork[0]: 10.130.0.0/16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			errs := render.NetworksOf(controlplanev1.InstallSpec{Networking: tt.networking, APIVIPs: tt.vips}, tt.replicas, nil,
				field.NewPath("install")).
				Problems()
			if tt.want == "" {
				NewWithT(t).Expect(errs).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(errs.ToAggregate()).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

// TestNetworkProblemOfCluster: the Cluster's networks, and those that assisted-service has by itself, count where install has none.
func TestNetworkProblemOfCluster(t *testing.T) {
	tests := []struct {
		name           string
		machine        string
		pods, services []string
		want           string
	}{
		{name: "the service's own networks", machine: "192.0.2.0/24"},
		{name: "the Cluster's networks", machine: "2001:db8::/64", pods: []string{"fd01::/48"}, services: []string{"fd02::/112"}},
		{
			"networks of another family than the service's own", "2001:db8::/64", nil, nil,
			"spec.install.networking.clusterNetwork: Invalid value: \"10.128.0.0/14\"",
		},
		{"an overlap with the service's own", "172.30.4.0/24", nil, nil, "serviceNetwork: Invalid value: \"172.30.0.0/16\": must not overlap"},
		{"an overlap with the Cluster's", "192.0.2.0/24", []string{"192.0.0.0/16"}, nil, "Cluster.spec.clusterNetwork.pods.cidrBlocks[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := controlPlane(3).Spec
			spec.Install.Networking.MachineNetwork = []string{tt.machine}
			cluster := &clusterv1.Cluster{}
			cluster.Spec.ClusterNetwork.Pods.CIDRBlocks, cluster.Spec.ClusterNetwork.Services.CIDRBlocks = tt.pods, tt.services
			got := render.NetworkProblem(spec, cluster)
			if tt.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(got).To(ContainSubstring(tt.want))
		})
	}
}

// TestNetworksOverride: install comes before the Cluster.
func TestNetworksOverride(t *testing.T) {
	cluster := &clusterv1.Cluster{}
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/14"}
	cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"172.16.0.0/16"}
	install := controlplanev1.InstallSpec{Networking: controlplanev1.NetworkingSpec{
		ClusterNetwork: []controlplanev1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 24}, {CIDR: "fd01::/48"}},
		ServiceNetwork: []string{"172.30.0.0/16"}, NetworkType: "Cilium",
	}}
	want := hiveext.Networking{
		ClusterNetwork: []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 24}, {CIDR: "fd01::/48", HostPrefix: 64}},
		ServiceNetwork: []string{"172.30.0.0/16"}, NetworkType: "Cilium",
	}
	if diff := cmp.Diff(want, render.NetworksOf(install, 3, cluster, field.NewPath("install")).Render()); diff != "" {
		t.Errorf("networking (-want +got):\n%s", diff)
	}
}
