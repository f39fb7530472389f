// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// goodInstall is a cluster that the service takes.
func goodInstall() *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{}
	aci.Spec.ProvisionRequirements.ControlPlaneAgents = 3
	aci.Spec.PlatformType = hiveext.BareMetalPlatformType
	aci.Spec.APIVIPs, aci.Spec.IngressVIPs = []string{"192.0.2.5"}, []string{"192.0.2.6"}
	aci.Spec.Networking = hiveext.Networking{
		MachineNetwork: []hiveext.MachineNetworkEntry{{CIDR: "192.0.2.0/24"}},
		ClusterNetwork: []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}},
		ServiceNetwork: []string{"172.30.0.0/16"}, NetworkType: "OVNKubernetes",
	}
	return aci
}

func TestCheckClusterSpec(t *testing.T) {
	type spec = hiveext.AgentClusterInstallSpec
	userManaged := &hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged}
	tests := []struct {
		name   string
		change func(*spec)
		want   string // none when the service takes it
	}{
		{"good", func(*spec) {}, ""},
		{"dual stack", func(s *spec) {
			s.APIVIPs, s.IngressVIPs = []string{"192.0.2.5", "2001:db8::5"}, []string{"192.0.2.6", "2001:db8::6"}
			s.Networking.MachineNetwork = append(s.Networking.MachineNetwork, hiveext.MachineNetworkEntry{CIDR: "2001:db8::/64"})
			s.Networking.ClusterNetwork = append(s.Networking.ClusterNetwork, hiveext.ClusterNetworkEntry{CIDR: "fd01::/48", HostPrefix: 64})
			s.Networking.ServiceNetwork = append(s.Networking.ServiceNetwork, "fd02::/112")
		}, ""},
		{"load balancer of the user", func(s *spec) {
			s.LoadBalancer, s.APIVIPs, s.IngressVIPs = userManaged, []string{"198.51.100.5"}, []string{"198.51.100.5"}
		}, ""},
		{"a network type that is gone", func(s *spec) { s.Networking.NetworkType = "OpenShiftSDN" }, "OpenShiftSDN"},
		{"a host prefix that is too long", func(s *spec) { s.Networking.ClusterNetwork[0].HostPrefix = 26 }, "Host prefix, now 26"},
		{"a host prefix that is too short", func(s *spec) { s.Networking.ClusterNetwork[0].HostPrefix = 13 }, "does not contain enough"},
		{"no network", func(s *spec) { s.Networking.ServiceNetwork[0] = "172.30.0.1/16" }, "is not a valid network"},
		{"an overlap", func(s *spec) { s.Networking.ServiceNetwork[0] = "10.129.0.0/16" }, "overlap"},
		{"another family", func(s *spec) { s.Networking.ServiceNetwork[0] = "fd02::/112" }, "IP families 4 and 6"},
		{"a single node without user-managed networking", func(s *spec) {
			s.ProvisionRequirements.ControlPlaneAgents, s.PlatformType, s.Networking.UserManagedNetworking = 1, "None", ptr.To(false)
		}, "UserManagedNetworking must be set to true with SNO"},
		{"a single node on bare metal", func(s *spec) { s.ProvisionRequirements.ControlPlaneAgents = 1 }, "not supported alongside"},
		{"user-managed networking on bare metal", func(s *spec) { s.Networking.UserManagedNetworking = ptr.To(true) }, "Can't set baremetal"},
		{"external without user-managed networking", func(s *spec) { s.PlatformType = "External" }, "user-managed-networking disabled"},
		{
			"addresses with user-managed networking", func(s *spec) { s.PlatformType, s.Networking.UserManagedNetworking = "None", ptr.To(true) },
			"User Managed Networking",
		},
		{"one address too few", func(s *spec) { s.IngressVIPs = nil }, "the same number"},
		{"addresses of two families", func(s *spec) { s.IngressVIPs = []string{"2001:db8::6"} }, "two IP families"},
		{"one address twice", func(s *spec) { s.IngressVIPs = s.APIVIPs }, "appears multiple times"},
		{"an address outside", func(s *spec) { s.APIVIPs = []string{"198.51.100.5"} }, "does not belong to machine-network-cidr"},
		{"two control-plane hosts without an arbiter on external", func(s *spec) {
			s.ProvisionRequirements.ControlPlaneAgents, s.PlatformType, s.Networking.UserManagedNetworking, s.APIVIPs, s.IngressVIPs = 2,
				"External", ptr.To(true), nil, nil
		}, "only supported on platforms baremetal and none"},
		{"Tang without servers", func(s *spec) { s.DiskEncryption = &hiveext.DiskEncryption{Mode: ptr.To("tang")} }, "tang_servers isn't set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			aci := goodInstall()
			tt.change(&aci.Spec)
			checkText(t, checkClusterSpec(aci, 0), tt.want)
		})
	}
	for _, key := range []string{installConfigOverrides, ignoredClusterValidations, ignoredHostValidations} {
		aci := goodInstall()
		aci.Annotations = map[string]string{key: "}"}
		checkText(t, checkClusterSpec(aci, 0), "Failed to parse '"+key+"'")
	}
}

// TestMachineAPI: a cluster on platform BareMetal has a Machine API unless the install-config says otherwise, as that of our providers does
// (DESIGN D7).
func TestMachineAPI(t *testing.T) {
	for overrides, want := range map[string]bool{
		"":                    true,
		`{"capabilities":{}}`: true,
		`{"capabilities":{"baselineCapabilitySet":"vCurrent"}}`:                                                 true,
		`{"capabilities":{"baselineCapabilitySet":"v4.11"}}`:                                                    true,
		`{"capabilities":{"baselineCapabilitySet":"None","additionalEnabledCapabilities":["baremetal"]}}`:       false,
		`{"capabilities":{"baselineCapabilitySet":"None","additionalEnabledCapabilities":["MachineAPI"]}}`:      true,
		`{"capabilities":{"baselineCapabilitySet":"None","additionalEnabledCapabilities":["Ingress","Build"]}}`: false,
	} {
		aci := goodInstall()
		aci.Annotations = map[string]string{installConfigOverrides: overrides}
		if got := hasMachineAPI(aci); got != want {
			t.Errorf("with %q it is %t", overrides, got)
		}
		aci.Spec.PlatformType, aci.Spec.Networking.UserManagedNetworking = hiveext.NonePlatformType, ptr.To(true)
		if hasMachineAPI(aci) {
			t.Errorf("with %q on platform None it writes provider IDs", overrides)
		}
	}
}

func checkText(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("the service says %v, want %q", err, want)
	}
}

// TestSpecRefused: bad input is shown until it is corrected.
func TestSpecRefused(t *testing.T) {
	f := newFixture(t, Options{})
	f.cluster("c1", 1, 0, false)
	synced := func(status corev1.ConditionStatus, part string) func() bool {
		return func() bool {
			for _, c := range f.aci("c1").Status.Conditions {
				if c.Type == hiveext.ClusterSpecSyncedCondition {
					return c.Status == status && strings.Contains(c.Message, part)
				}
			}
			return false
		}
	}
	f.patchACI("c1", func(aci *hiveext.AgentClusterInstall) { aci.Spec.Networking.ServiceNetwork = []string{"1.2.3.0/25"} })
	f.eventually("the refusal of overlapping networks", synced(corev1.ConditionFalse, "overlap"))
	f.patchACI("c1", func(aci *hiveext.AgentClusterInstall) { aci.Spec.Networking.ServiceNetwork = nil })
	f.eventually("the correction", synced(corev1.ConditionTrue, ""))
}
