// SPDX-License-Identifier: Apache-2.0

package assisted_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func TestAddresses(t *testing.T) {
	a := &assisted.Agent{}
	a.Status.Inventory.Interfaces = []assisted.Interface{
		{Name: "eno1", IPV4Addresses: []string{"192.0.2.21/24"}, IPV6Addresses: []string{"2001:0db8::21/64", "fe80::21/64"}},
		{Name: "idrac", IPV4Addresses: []string{"169.254.0.2/16", "no address"}},
		{Name: "eno2", IPV4Addresses: []string{"198.51.100.21"}},
	}
	NewWithT(t).Expect(a.Addresses()).To(Equal([]string{"192.0.2.21", "2001:db8::21", "198.51.100.21"}))
}
