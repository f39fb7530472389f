// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// addHost adds a free host that names network data, which were read; data of nil do not exist.
func addHost(s *scope, name string, data map[string][]byte) {
	host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	host.Spec.PreprovisioningNetworkDataName = name
	s.hosts = append(s.hosts, host)
	s.networks = append(s.networks, hostNetwork{host: &host, secret: name, data: data, read: true})
}

// TestAHostDoesNotWaitForTheNetworkOfAnother plays hosts that are added for a Machine whose medium is out. Metal3 takes any of them, so
// what is wrong with one must not keep another from its network.
func TestAHostDoesNotWaitForTheNetworkOfAnother(t *testing.T) {
	uninspected := map[string][]byte{"nmstate": []byte("interfaces: [{name: eno1}]")}
	tests := []struct {
		name        string
		change      func(*scope)
		image, text string
		write       []string
	}{
		{
			name: "a Secret is missing", change: func(s *scope) { addHost(s, "host-3", nil) },
			image: bootstrapv1.NetworkDataMissingReason, text: "BareMetalHost host-3: Secret host-3 does not exist",
			write: []string{"demo-x-host-1"},
		},
		{
			name: "a host has not been inspected", change: func(s *scope) { addHost(s, "host-3", uninspected) },
			image: bootstrapv1.NetworkDataInvalidReason, text: "MAC address of eno1 is not known", write: []string{"demo-x-host-1"},
		},
		{
			name: "two hosts have one device: a third one gets its network", change: func(s *scope) {
				addHost(s, "host-3", networkData(mac1))
				addHost(s, "host-4", networkData("00:00:5e:00:53:04"))
			},
			image: bootstrapv1.NetworkDataInvalidReason, text: "BareMetalHosts host-1 and host-3 is for one MAC address, " + mac1,
			write: []string{"demo-x-host-4"},
		},
		{
			name: "a host has the device of one that has its network, which stays", change: func(s *scope) {
				s.networks[1].data = networkData(mac0)
				addHost(s, "host-3", networkData(mac1))
			},
			image: bootstrapv1.NetworkDataInvalidReason, text: "BareMetalHosts host-0 and host-1 is for one MAC address, " + mac0,
			write: []string{"demo-x-host-3"},
		},
		{
			name: "the data of a host that has its network are broken: it stays", change: func(s *scope) { s.networks[0].data = uninspected },
			image: bootstrapv1.NetworkDataInvalidReason, text: "BareMetalHost host-0: Secret host-0", write: []string{"demo-x-host-1"},
		},
		{
			name: "there is no InfraEnv, so no medium either: none is made without all networks", change: func(s *scope) {
				s.infraEnv, s.nmstates, s.config.Status.Initialization.DataSecretCreated = nil, nil, nil
				addHost(s, "host-3", nil)
			},
			image: bootstrapv1.NetworkDataMissingReason, write: []string{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := networked()
			s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
			tt.change(s)
			d := decide(s)
			g.Expect(d.image.Reason).To(Equal(tt.image), d.image.Message)
			g.Expect(d.image.Message).To(ContainSubstring(tt.text))
			g.Expect(names(d.networks.write)).To(Equal(tt.write))
			g.Expect(d.networks.remove).To(BeEmpty(), "a network goes with its host, not because of a mistake in its Secret")
			g.Expect(d.retryAfter).To(Equal(networkRetry))
			g.Expect(d.mediaURL).To(BeEmpty())
		})
	}
}
