// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func named(name string, spec bootstrapv1.OpenshiftAssistedConfigSpec) *bootstrapv1.OpenshiftAssistedConfig {
	c := &bootstrapv1.OpenshiftAssistedConfig{Spec: spec}
	c.Name = name
	return c
}

// TestInfraEnvNameIsPinned is the golden test of DESIGN D5: another name for the same content would make a second InfraEnv, and with it
// another ISO, for every cluster that exists.
func TestInfraEnvNameIsPinned(t *testing.T) {
	full := bootstrapv1.OpenshiftAssistedConfigSpec{
		SSHAuthorizedKey:     "ssh-ed25519 AAAA me",
		AdditionalNTPSources: []string{"ntp.example.com"},
		Proxy:                bootstrapv1.ProxySpec{HTTPProxy: "http://proxy:3128", NoProxy: []string{".example.com", "10.0.0.0/8"}},
		CPUArchitecture:      "aarch64",
	}
	media := bootstrapv1.OpenshiftAssistedConfigSpec{
		Boot: bootstrapv1.BootSpec{Mode: bootstrapv1.BootModeLiveISO, ImageType: bootstrapv1.ImageTypeFull, OSImageVersion: "4.20"},
		Discovery: bootstrapv1.DiscoverySpec{
			KernelArguments: []string{"console=ttyS0", "quiet"}, Ignition: `{"ignition":{"version":"3.2.0"}}`,
		},
	}
	tests := map[string]struct {
		config *bootstrapv1.OpenshiftAssistedConfig
		want   string
	}{
		"nothing given": {named("a", bootstrapv1.OpenshiftAssistedConfigSpec{}), "demo-b9ac033e36"},
		"everything":    {named("a", full), "demo-04120d17f6"},
		"media":         {named("a", media), "demo-dd86518e7c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := infraEnvName("demo", tt.config, inputs{pullSecret: "pull-secret"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestInfraEnvNameSharing(t *testing.T) {
	g := NewWithT(t)
	name := func(cluster string, c *bootstrapv1.OpenshiftAssistedConfig, secret string) string {
		got, err := infraEnvName(cluster, c, inputs{pullSecret: secret})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validation.IsValidLabelValue(got)).To(BeEmpty(), "assisted-service puts the name into a label")
		return got
	}
	a, b := named("a", bootstrapv1.OpenshiftAssistedConfigSpec{}), named("b", bootstrapv1.OpenshiftAssistedConfigSpec{})
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "equal content is shared")
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("demo", a, "t")), "the pull secret is content")
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("other", a, "s")), "clusters share nothing")

	content, err := infraEnvName("demo", a, inputs{pullSecret: "s", trustBundle: "certificates"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).NotTo(Equal(name("demo", a, "s")), "what a ConfigMap holds is content")

	b.Spec.Installation.KernelArguments = []string{"quiet"}
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "how the host is installed is not discovery")

	b.Spec.NodeRegistration.Name = bootstrapv1.NodeNameBareMetalHost
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "how the Node registers is not discovery")

	b.Spec.StaticNetworking.Source = bootstrapv1.StaticNetworkingBareMetalHosts
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("demo", b, "s")), "the networks of hosts are content")
	b.Spec.StaticNetworking.Source = ""
	b.Spec.Installation.RootDeviceHints.Model = "M"
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "where the system goes is not discovery")

	a.Spec.HostIdentity, b.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv, bootstrapv1.HostIdentityInfraEnv
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("demo", b, "s")), "an InfraEnv that is an identity is not shared")

	image := func(version string) string {
		got, err := infraEnvName("demo", b, inputs{pullSecret: "s", osImageVersion: version})
		g.Expect(err).NotTo(HaveOccurred())
		return got
	}
	g.Expect(image("4.20")).NotTo(Equal(image("4.21")), "the OS image of a release is content")
	b.Spec.Boot.OSImageVersion = "4.19"
	g.Expect(image("4.20")).To(Equal(image("4.21")), "the user's version wins")

	long := strings.Repeat("x", 51) + "-" + strings.Repeat("y", 40)
	g.Expect(len(name(long, a, "s"))).To(BeNumerically("<=", validation.LabelValueMaxLength))
}

func TestInfraEnvSpec(t *testing.T) {
	g := NewWithT(t)
	config := named("m-0", bootstrapv1.OpenshiftAssistedConfigSpec{
		Boot:                         bootstrapv1.BootSpec{ImageType: bootstrapv1.ImageTypeMinimal, OSImageVersion: "4.20"},
		Discovery:                    bootstrapv1.DiscoverySpec{KernelArguments: []string{"console=ttyS0", "quiet"}, Ignition: "{}"},
		NTPSources:                   []string{"192.0.2.1"},
		MirrorRegistryRef:            bootstrapv1.LocalConfigMapReference{Name: "mirrors"},
		NetworkDiscoveryDelaySeconds: 5,
	})
	config.Namespace = "demo"
	spec := infraEnvSpec(config, inputs{pullSecret: "s", trustBundle: "certificates"})
	g.Expect(spec.ImageType).To(Equal("minimal-iso"))
	g.Expect(spec.OSImageVersion).To(Equal("4.20"))
	g.Expect(spec.KernelArguments).
		To(Equal([]assisted.KernelArgument{{Operation: "append", Value: "console=ttyS0"}, {Operation: "append", Value: "quiet"}}))
	g.Expect(spec.IgnitionConfigOverride).To(Equal("{}"))
	g.Expect(spec.NTPSources).To(Equal([]string{"192.0.2.1"}))
	g.Expect(spec.MirrorRegistryRef).To(Equal(&assisted.ConfigMapReference{Name: "mirrors", Namespace: "demo"}))
	g.Expect(spec.NetworkDiscoveryDelaySeconds).To(BeEquivalentTo(5))
	g.Expect(spec.AdditionalTrustBundle).To(Equal("certificates"))

	config.Spec.Boot.ImageType = bootstrapv1.ImageTypeFull
	g.Expect(infraEnvSpec(config, inputs{}).ImageType).To(Equal("full-iso"))
	g.Expect(droppedFields(config, &assisted.InfraEnv{Spec: spec})).To(BeEmpty())
	g.Expect(droppedFields(config, &assisted.InfraEnv{})).
		To(Equal([]string{"ntpSources", "mirrorRegistryRef", "networkDiscoveryDelaySeconds"}))
}
