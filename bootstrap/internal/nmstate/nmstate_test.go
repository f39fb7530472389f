// SPDX-License-Identifier: Apache-2.0

package nmstate

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const bond = `
interfaces:
- name: bond0
  type: bond
  mac-address: 00:00:5e:00:53:ff
  link-aggregation: {mode: 802.3ad, port: [eno1, eno2]}
- name: bond0.100
  type: vlan
  vlan: {base-iface: bond0, id: 100}
`

func TestDevices(t *testing.T) {
	nics := map[string]string{"eno1": "00:00:5e:00:53:01", "eno2": "00:00:5e:00:53:02"}
	one := []assisted.NMStateInterface{{Name: "eno1", MACAddress: "00:00:5e:00:53:01"}}
	both := append(one[:1:1], assisted.NMStateInterface{Name: "eno2", MACAddress: "00:00:5e:00:53:02"})
	tests := map[string]struct {
		document string
		nics     map[string]string
		boot     string
		want     []assisted.NMStateInterface
		err      string
	}{
		"address in the document": {document: "interfaces: [{name: eno1, type: ethernet, mac-address: '00:00:5E:00:53:01'}]", want: one},
		"address with dashes":     {document: "interfaces: [{name: eno1, type: ethernet, mac-address: 00-00-5e-00-53-01}]", want: one},
		"the document's address wins": {
			document: "interfaces: [{name: eno1, type: ethernet, mac-address: '00:00:5e:00:53:01'}]",
			nics:     map[string]string{"eno1": "00:00:5e:00:53:09"}, want: one,
		},
		"address found by inspection":     {document: "interfaces: [{name: eno1, type: ethernet}]", nics: nics, want: one},
		"no type is a device":             {document: "interfaces: [{name: eno1}]", nics: nics, want: one},
		"the only device may be the boot": {document: "interfaces: [{name: eno1, type: ethernet}]", boot: "00:00:5e:00:53:01", want: one},
		"one of two is not": {
			document: "interfaces: [{name: eno1, type: ethernet}, {name: eno2, type: ethernet}]", boot: "00:00:5e:00:53:01",
			err: "MAC address of eno1, eno2 is not known",
		},
		"one of two is known": {
			document: "interfaces: [{name: eno1, type: ethernet}, {name: eno3, type: ethernet}]", nics: nics,
			err: "MAC address of eno3 is not known",
		},
		"ports of a bond, base of a VLAN": {document: bond, nics: nics, want: both},
		"ports that are there too": {
			document: bond + "- {name: eno2, type: ethernet, mac-address: '00:00:5e:00:53:02'}\n", nics: nics, want: both,
		},
		"ports of a bridge": {
			document: "interfaces: [{name: br0, type: linux-bridge, bridge: {port: [{name: eno1}, {name: eno2}]}}]", nics: nics, want: both,
		},
		"an OVS bridge on a bond": {
			document: "interfaces: [{name: br-ex, type: ovs-bridge, bridge: {port: [{name: br-ex}, {name: b, link-aggregation: {port: [{name: " +
				"eno1}, {name: eno2}]}}]}}, {name: br-ex, type: ovs-interface}]",
			nics: nics, want: both,
		},
		"older names of ports": {
			document: "interfaces: [{name: bond0, type: bond, link-aggregation: {slaves: [eno1, eno2]}}]", nics: nics, want: both,
		},
		"a device that is absent": {
			document: "interfaces: [{name: eno1, type: ethernet}, {name: eno9, type: ethernet, state: absent}]", nics: nics, want: one,
		},
		"no device": {document: "interfaces: [{name: dummy0, type: dummy}]", err: "no physical device"},
		"an address that is none": {
			document: "interfaces: [{name: eno1, type: ethernet, mac-address: a}]", err: "device eno1 has no MAC address of six bytes",
		},
		"an address of InfiniBand": {
			document: "interfaces: [{name: eno1, type: ethernet, mac-address: '00:00:5e:00:53:01:00:00'}]", err: "six bytes",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			document, err := Parse(map[string][]byte{"nmstate": []byte(tt.document)})
			g.Expect(err).NotTo(HaveOccurred())
			got, err := document.Devices(tt.nics, tt.boot)
			if tt.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestParse(t *testing.T) {
	const secret = "p4ssw0rd"
	tests := map[string]struct {
		data map[string]string
		json string
		err  string
	}{
		"nmstate": {
			data: map[string]string{"nmstate": "interfaces:\n- name: eno1\n  ipv4: {enabled: true}\n"},
			json: `{"interfaces":[{"ipv4":{"enabled":true},"name":"eno1"}]}`,
		},
		"JSON": {
			data: map[string]string{"nmstate": `{"interfaces":[{"name":"eno1","mtu":9000}]}`}, json: `{"interfaces":[{"mtu":9000,"name":"eno1"}]}`,
		},
		"nulls are left out": {
			data: map[string]string{"nmstate": "interfaces: [{name: eno1, ipv4: null}]\nroutes: null\n"}, json: `{"interfaces":[{"name":"eno1"}]}`,
		},
		"nmstate as networkData": {
			data: map[string]string{"networkData": "interfaces: [{name: eno1}]"}, json: `{"interfaces":[{"name":"eno1"}]}`,
		},
		"nmstate before the other": {
			data: map[string]string{"networkData": "links: []", "nmstate": "interfaces: [{name: eno1}]"}, json: `{"interfaces":[{"name":"eno1"}]}`,
		},
		"OpenStack's form": {
			data: map[string]string{"networkData": "links: [{id: " + secret + "}]\nnetworks: []\n"},
			err:  "key networkData: it is in the form of OpenStack's network_data.json",
		},
		"no YAML":                  {data: map[string]string{"nmstate": "{" + secret}, err: "key nmstate: it is no nmstate document"},
		"a text":                   {data: map[string]string{"nmstate": secret}, err: "no nmstate document"},
		"no interfaces":            {data: map[string]string{"nmstate": "routes: {}"}, err: "no nmstate document"},
		"interfaces of wrong type": {data: map[string]string{"nmstate": "interfaces: " + secret}, err: "no nmstate document"},
		"another key": {
			data: map[string]string{"userData": "interfaces: [{name: eno1}]"}, err: "neither the key nmstate nor networkData",
		},
		"empty": {err: "neither the key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data := map[string][]byte{}
			for key, value := range tt.data {
				data[key] = []byte(value)
			}
			document, err := Parse(data)
			if tt.err != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(tt.err), Not(ContainSubstring(secret)))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			raw, err := document.JSON()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(raw)).To(Equal(tt.json))
		})
	}
}

// TestBound: of network data, what is parsed is kept, and what is too long is refused whether or not it was cut.
func TestBound(t *testing.T) {
	g := NewWithT(t)
	long := []byte(strings.Repeat(" ", 1<<20))
	bound := Bound(map[string][]byte{"networkData": long, "nmstate": []byte("interfaces: []"), "userData": long})
	g.Expect(bound).To(And(HaveLen(2), HaveKeyWithValue("nmstate", []byte("interfaces: []"))))
	again := Bound(map[string][]byte{"networkData": slices.Clone(long)})
	g.Expect(&again["networkData"][0]).To(BeIdenticalTo(&bound["networkData"][0]), "a second one takes no memory")
	delete(bound, "nmstate")
	_, whole := Parse(map[string][]byte{"networkData": long})
	_, cut := Parse(bound)
	g.Expect(cut).To(And(MatchError(whole.Error()), MatchError(ContainSubstring("too long"))))
	g.Expect(Bound(nil)).NotTo(BeNil(), "a Secret without data is none that is missing")
}
