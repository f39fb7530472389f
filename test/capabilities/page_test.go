// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDifferences(t *testing.T) {
	actual := map[string]any{"a": "1", "list": []any{map[string]any{"b": int64(2), "c": true}}}
	for name, tt := range map[string]struct {
		wanted any
		found  []string
	}{
		"some keys":       {map[string]any{"a": "1"}, nil},
		"items":           {map[string]any{"list": []any{map[string]any{"b": int64(2)}}}, nil},
		"another value":   {map[string]any{"a": "2"}, []string{"o.a is 1, want 2"}},
		"a missing key":   {map[string]any{"d": "1"}, []string{"o.d is <nil>, want 1"}},
		"a shorter list":  {map[string]any{"list": []any{}}, []string{"o.list is [map[b:2 c:true]], want []"}},
		"an item's field": {map[string]any{"list": []any{map[string]any{"c": false}}}, []string{"o.list[0].c is true, want false"}},
		"what is there":   {map[string]any{"a": nil}, []string{"o.a is 1, want <nil>"}},
		"what is not":     {map[string]any{"d": nil}, nil},
		"another type":    {map[string]any{"a": map[string]any{}}, []string{"o.a is 1, want map[]"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(differences("o", tt.wanted, actual)).To(Equal(tt.found))
		})
	}
}

func TestOverlay(t *testing.T) {
	g := NewWithT(t)
	cluster, err := decode(`
kind: Cluster
metadata: {name: demo, namespace: page}
spec: {controlPlaneRef: {name: demo-control-plane}, infrastructureRef: {name: demo}}
---
kind: OpenshiftAssistedControlPlane
metadata: {name: demo-control-plane, namespace: page}
spec: {replicas: 3, machineTemplate: {spec: {infrastructureRef: {name: demo-control-plane}}}}
`)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := decode(`
kind: OpenshiftAssistedControlPlane
metadata: {name: another, namespace: demo}
spec: {replicas: 5, machineTemplate: {spec: {infrastructureRef: {name: another}}}}
---
kind: Cluster
metadata: {name: another, namespace: demo}
spec: {clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}}
---
kind: ConfigMap
metadata: {name: manifests, namespace: demo}
`)
	g.Expect(err).NotTo(HaveOccurred())
	p := page{name: "page", manifest: manifest}
	g.Expect(p.replicas(3)).To(Equal(5))
	g.Expect(p.bringsAddresses()).To(BeFalse())
	g.Expect(page{}.bringsAddresses()).To(BeTrue(), "of a page without a control plane")

	objects, err := p.overlay(cluster, "page")
	g.Expect(err).NotTo(HaveOccurred())
	wanted, err := decode(`
kind: Cluster
metadata: {name: demo, namespace: page}
spec: {controlPlaneRef: {name: demo-control-plane}, infrastructureRef: {name: demo}, clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/16]}}}
---
kind: OpenshiftAssistedControlPlane
metadata: {name: demo-control-plane, namespace: page}
spec: {replicas: 5, machineTemplate: {spec: {infrastructureRef: {name: demo-control-plane}}}}
---
kind: ConfigMap
metadata: {name: manifests, namespace: page}
`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(Equal(wanted))
}
