// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

func TestParseNetwork(t *testing.T) {
	const device = `{"name":"eno1","macAddress":"00:00:5e:00:53:01"}`
	for name, tt := range map[string]struct{ spec, err string }{
		"a device": {`{"interfaces":[` + device + `],` +
			`"config":{"interfaces":[{"name":"eno1","type":"ethernet"},{"name":"bond0","type":"bond"}]}}`, ""},
		"a device twice": {`{"interfaces":[` + device + `,` + device + `]}`, "must be unique"},
		"a device without address": {`{"interfaces":[` + device + `],"config":{"interfaces":[{"name":"eno2","type":"ethernet"}]}}`,
			"mapping for interface eno2 is missing"},
		"nothing":      {`null`, ""},
		"another form": {`{"interfaces":"eno1"}`, "failed to parse"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := &aiv1.NMStateConfig{Spec: &apiextensionsv1.JSON{Raw: []byte(tt.spec)}}
			if tt.err == "" {
				_, err := parseNetwork(config)
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			_, err := parseNetwork(config)
			g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
		})
	}
}

// TestNetworkInputsOfAllNamespaces: the service does not ask in whose namespace an NMStateConfig is.
func TestNetworkInputsOfAllNamespaces(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(aiv1.AddToScheme(scheme)).To(Succeed())
	config := func(namespace, rack string) *aiv1.NMStateConfig {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "host", Labels: map[string]string{"rack": rack}}
		return &aiv1.NMStateConfig{ObjectMeta: meta, Spec: &apiextensionsv1.JSON{Raw: []byte(`{}`)}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config("one", "a"), config("two", "a"), config("three", "b")).Build()
	env := &aiv1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "env"}}
	env.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}}
	texts, networks, err := (&Simulator{client: c}).networkInputs(t.Context(), env)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(texts).To(Equal([]string{"one/host={}", "two/host={}"}))
	g.Expect(networks).To(HaveLen(2))
}

func TestBooted(t *testing.T) {
	g := NewWithT(t)
	host, err := parseNetwork(&aiv1.NMStateConfig{Spec: &apiextensionsv1.JSON{Raw: []byte(`{
		"interfaces":[{"name":"eno1","macAddress":"00:00:5e:00:53:01"}],
		"config":{"interfaces":[{"name":"eno1","type":"ethernet",
			"ipv4":{"address":[{"ip":"192.0.2.21","prefix-length":24}]},"ipv6":{"address":[{"ip":"2001:db8::21","prefix-length":64}]}}]}}`)}})
	g.Expect(err).NotTo(HaveOccurred())
	image := imageInputs{Architecture: "aarch64", Networks: []network{host}}
	before := HostHardware{NICs: []NIC{
		{
			Name: "a", MAC: "00:00:5E:00:53:01", IPs: []string{"192.0.2.1/24"},
		},
		{Name: "b", MAC: "00:00:5e:00:53:02", IPs: []string{"192.0.2.2/24"}},
	}}
	found := image.booted(before)
	g.Expect(found.NICs[0].IPs).To(Equal([]string{"192.0.2.21/24", "2001:db8::21/64"}))
	g.Expect(found.NICs[1].IPs).To(Equal([]string{"192.0.2.2/24"}), "another host's network")
	g.Expect(before.NICs[0].IPs).To(Equal([]string{"192.0.2.1/24"}), "the machine itself stays as it is")
	g.Expect(inventoryOf(&found).CPU.Architecture).To(Equal("aarch64"))
	g.Expect(inventoryLabels(&found)).To(HaveKeyWithValue(inventoryPrefix+"cpu-architecture", "aarch64"))
	before.Architecture = "x86_64"
	g.Expect(image.booted(before).Architecture).To(Equal("x86_64"), "what the machine says itself is believed")
}
