// SPDX-License-Identifier: Apache-2.0

package nmstate

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

// bomb is a document of n bytes that becomes 3,000 times as large when its aliases are followed.
func bomb(n int) string {
	return "x: &a \"" + strings.Repeat("a", n) + "\"\ninterfaces: [{name: eno1, type: ethernet, mac-address: '00:00:5e:00:53:00', l: [" +
		strings.Repeat("*a,", 3000) + "]}]\n"
}

// Whoever may create a Secret beside a BareMetalHost chooses these bytes.
func TestHugeDocuments(t *testing.T) {
	for name, test := range map[string]struct{ document, want string }{
		"108 KiB with aliases": {document: bomb(100 << 10), want: "no more than 65536 bytes are read"},
		"50 KiB with aliases":  {document: bomb(40 << 10), want: "YAML alias"},
		"deep lists": {document: "interfaces: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
			want: "nested more than 64 deep"},
		"many small objects": {document: "interfaces: [" + strings.Repeat("{},", 20_000) + "]", want: "more than 10000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			untrustedtest.Bounded(t, func() {
				_, err := Parse(map[string][]byte{"networkData": []byte(test.document)})
				NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("key networkData: "), ContainSubstring(test.want))))
			})
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		bond, bomb(1 << 10), "interfaces: [{name: eno1, type: ethernet}]", "links: []", "interfaces: [{name: a, bridge: {port: [a, {name: b}]}}]",
		"interfaces: [" + strings.Repeat("{name: a},", 6000) + "]", "{interfaces: [{name: eno1, l: .inf}]}",
		"interfaces: [{name: a, vlan: {base-iface: !!binary YQ==}}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		untrustedtest.Bounded(t, func() {
			document, err := Parse(map[string][]byte{"nmstate": raw})
			if err != nil {
				return
			}
			_, _ = document.Devices(map[string]string{"eno1": "00:00:5e:00:53:01"}, "00:00:5e:00:53:02")
			_, _ = document.JSON()
		})
	})
}
