// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWithHostNetworks(t *testing.T) {
	g := NewWithT(t)
	out, err := withHostNetworks(
		[]byte(
			"kind: OpenshiftAssistedConfigTemplate\nmetadata: {name: w}\nspec: {template: {spec: {nodeRegistration: {name: " +
				"MachineName}}}}\n---\nkind: Cluster\nspec: {}\n",
		),
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(`---
kind: OpenshiftAssistedConfigTemplate
metadata:
  name: w
spec:
  template:
    spec:
      nodeRegistration:
        name: MachineName
      staticNetworking:
        source: BareMetalHosts
---
kind: Cluster
spec: {}
`))
}
