// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// audited is a line of an audit log: who has done what to an Agent of a namespace, and from when to when, in milliseconds.
func audited(user, verb, subresource, namespace string, code, from, to int) string {
	at := func(ms int) string { return fmt.Sprintf("2026-01-01T00:00:%02d.%03d000Z", ms/1000, ms%1000) }
	return fmt.Sprintf(`{"verb":%q,"user":{"username":%q},"objectRef":{"resource":"agents","subresource":%q,"namespace":%q,"name":"a"},`+
		`"responseStatus":{"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
		verb, user, subresource, namespace, code, at(from), at(to))
}

func TestReadSteps(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	g.Expect(os.WriteFile(path, []byte(strings.Join([]string{
		audited("service", "create", "", "one", 409, 0, 5),
		audited("us", "patch", "", "one", 200, 2, 8), // Before the cause.
		audited("service", "create", "", "one", 201, 10, 100),
		audited("us", "patch", "status", "one", 200, 110, 120), // Not the answer.
		audited("us", "patch", "", "one", 409, 130, 135),       // Refused.
		audited("others", "patch", "", "one", 200, 140, 150),
		audited("us", "patch", "", "one", 200, 350, 400),
		audited("us", "patch", "", "one", 200, 900, 950),
		audited("service", "create", "", "one", 201, 500, 600), // Another one.
		audited("service", "create", "", "two", 201, 1000, 1100),
		audited("us", "patch", "", "two", 200, 1150, 1200),
		audited("service", "create", "", "three", 201, 1000, 1100), // Never answered.
	}, "\n")+"\n"), 0o600)).To(Succeed())
	steps := []answeredStep{{"claim", "bootstrap", "create agents", "patch agents"}}
	times, err := readSteps(path, 0, steps, map[string]string{"bootstrap": "us"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(times).To(HaveLen(1))
	g.Expect(times["claim"]).To(HaveExactElements(BeNumerically("~", 0.05, 1e-9), BeNumerically("~", 0.25, 1e-9)))
}

// Two clusters never have an address in common, and every one of them can be listened on.
func TestAddressesOfClusters(t *testing.T) {
	g := NewWithT(t)
	seen := map[netip.Addr]bool{netip.MustParseAddr(modelAddress): true, netip.MustParseAddr(modelIngress): true}
	for number := 1; number <= 1000; number++ {
		for which := range 2 {
			address, err := netip.ParseAddr(addressOf(number, which))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(address.IsLoopback()).To(BeTrue())
			g.Expect(seen).NotTo(HaveKey(address))
			seen[address] = true
		}
		g.Expect(netip.MustParseAddr(addressOf(number, 0)).Next().String()).To(Equal(addressOf(number, 1)))
	}
}
