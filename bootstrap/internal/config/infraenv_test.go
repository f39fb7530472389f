// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
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
	tests := map[string]struct {
		config *bootstrapv1.OpenshiftAssistedConfig
		want   string
	}{
		"nothing given": {named("a", bootstrapv1.OpenshiftAssistedConfigSpec{}), "demo-b9ac033e36"},
		"everything":    {named("a", full), "demo-04120d17f6"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := infraEnvName("demo", tt.config, "pull-secret")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestInfraEnvNameSharing(t *testing.T) {
	g := NewWithT(t)
	name := func(cluster string, c *bootstrapv1.OpenshiftAssistedConfig, secret string) string {
		got, err := infraEnvName(cluster, c, secret)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validation.IsValidLabelValue(got)).To(BeEmpty(), "assisted-service puts the name into a label")
		return got
	}
	a, b := named("a", bootstrapv1.OpenshiftAssistedConfigSpec{}), named("b", bootstrapv1.OpenshiftAssistedConfigSpec{})
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "equal content is shared")
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("demo", a, "t")), "the pull secret is content")
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("other", a, "s")), "clusters share nothing")

	b.Spec.NodeRegistration.Name = bootstrapv1.NodeNameBareMetalHost
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "how the Node registers is not discovery")

	b.Spec.StaticNetworking.Source = bootstrapv1.StaticNetworkingBareMetalHosts
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("demo", b, "s")), "the networks of hosts are content")
	b.Spec.StaticNetworking.Source = ""
	b.Spec.Installation.RootDeviceHints.Model = "M"
	g.Expect(name("demo", a, "s")).To(Equal(name("demo", b, "s")), "where the system goes is not discovery")

	a.Spec.HostIdentity, b.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv, bootstrapv1.HostIdentityInfraEnv
	g.Expect(name("demo", a, "s")).NotTo(Equal(name("demo", b, "s")), "an InfraEnv that is an identity is not shared")

	long := strings.Repeat("x", 51) + "-" + strings.Repeat("y", 40)
	g.Expect(len(name(long, a, "s"))).To(BeNumerically("<=", validation.LabelValueMaxLength))
}
