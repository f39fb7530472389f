// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// deployment is one with an image; more are further containers.
func deployment(image, more string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: system}
spec:
  replicas: 1
  template:
    spec:
      tolerations: [{key: a}]
      containers: [{name: manager, image: "` + image + `", args: [--v=2], resources: {requests: {cpu: 1}}}` + more + `]
`
}

const namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: system}
`

func TestDefaultsOf(t *testing.T) {
	const digest = "@sha256:8f3b1c0d5e7a9264b1f0c3d2e5a7968b8f3b1c0d5e7a9264b1f0c3d2e5a7968b"
	for name, tt := range map[string]struct{ manifests, repository, reference, problem string }{
		"tag": {
			manifests: namespace + "---" + deployment("example.com:5000/a/b:v1", ""), repository: "example.com:5000/a/b", reference: ":v1",
		},
		"digest":            {manifests: deployment("example.com/b"+digest, ""), repository: "example.com/b", reference: digest},
		"no Deployment":     {manifests: namespace, problem: "has no Deployment"},
		"a second one":      {manifests: deployment("example.com/b:v1", ", {name: other}"), problem: "2 containers, want one"},
		"no image's name":   {manifests: deployment("A B", ""), problem: "read the image"},
		"no image whatever": {manifests: deployment("", ""), problem: "read the image"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := parse([]byte(tt.manifests))
			g.Expect(err).NotTo(HaveOccurred())
			d, err := defaultsOf(objects)
			if tt.problem != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.problem)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d).To(Equal(defaults{
				Repository: tt.repository, Reference: tt.reference, Replicas: float64(1),
				Resources: object{"requests": object{"cpu": float64(1)}}, Tolerations: list{object{"key": "a"}},
			}))
		})
	}
}

// TestReplaceExamples: only what names the namespace or the collector is replaced.
func TestReplaceExamples(t *testing.T) {
	tree := object{
		"metadata": object{"namespace": "clusters", "name": "clusters", "labels": object{"kubernetes.io/metadata.name": "clusters"}},
		"args":     list{"--namespace=clusters", "clusters", "--v=2", "a=clusters"}, "resources": list{"clusters"}, "other": "namespace",
		"env": list{object{"name": "A", "value": collector}}, "ports": list{object{"port": 4317.0}, object{"port": 443.0}}, "replicas": 4317.0,
	}
	NewWithT(t).Expect(replaceExamples(tree)).To(Equal(object{
		"metadata": object{
			"namespace": text("{{ .Values.watchNamespace }}"), "name": "clusters",
			"labels": object{"kubernetes.io/metadata.name": text("{{ .Values.watchNamespace }}")},
		},
		"args": list{text("--namespace={{ .Values.watchNamespace }}"), "clusters", "--v=2", "a=clusters"}, "resources": list{"clusters"},
		"other": "namespace",
		"env":   list{object{"name": "A", "value": text("{{ .Values.tracing.endpoint | quote }}")}},
		"ports": list{object{"port": text("{{ .Values.tracing.port }}")}, object{"port": 443.0}}, "replicas": 4317.0,
	}))
}

// TestTree: a Deployment takes the chart's values, a CRD is kept, and nothing else changes.
func TestTree(t *testing.T) {
	g := NewWithT(t)
	objects, err := parse([]byte(namespace + "---" + deployment("example.com/b:v1", "") + `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things, annotations: {a: b}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: manager, namespace: system}
spec: {egress: [{ports: [{port: 443}]}]}
`))
	g.Expect(err).NotTo(HaveOccurred())
	tree, err := providers[1].tree(objects, defaults{Reference: ":v1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tree).To(HaveLen(4))
	g.Expect(tree).To(HaveKeyWithValue("Namespace/system", objects[0].Object))
	definition := tree["CustomResourceDefinition/things"].(object)
	g.Expect(definition["metadata"]).To(HaveKeyWithValue("annotations", object{
		"a": "b", "helm.sh/resource-policy": guarded{".Values.crds.keep", "keep"},
	}))
	g.Expect(tree["NetworkPolicy/system/manager"].(object)["spec"]).To(Equal(object{
		"egress": list{object{"ports": list{object{"port": float64(443)}}}, further(".Values.networkPolicy.extraEgress")},
	}))
	spec := tree["Deployment/system/manager"].(object)["spec"].(object)
	g.Expect(spec).To(HaveKeyWithValue("replicas", text("{{ .Values.controlPlane.replicas }}")))
	pod := spec["template"].(object)["spec"].(object)
	g.Expect(pod).To(And(
		HaveKeyWithValue("nodeSelector", optional(".Values.controlPlane.nodeSelector")),
		HaveKeyWithValue("imagePullSecrets", optional(".Values.imagePullSecrets")),
	))
	manager := pod["containers"].(list)[0].(object)
	g.Expect(manager).To(HaveKeyWithValue("args", list{"--v=2", further(".Values.controlPlane.extraArgs")}))
	g.Expect(manager).To(HaveKeyWithValue("resources", block(".Values.controlPlane.resources")))
}

// TestTreeNeeds: without annotations a CRD would be deleted with the release, and all clusters with it; without egress a value of the chart
// would be lost.
func TestTreeNeeds(t *testing.T) {
	for manifest, problem := range map[string]string{
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things}}": "it has no annotations",
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: things}, spec: {}}":     "it has no egress",
	} {
		g := NewWithT(t)
		objects, err := parse([]byte(manifest))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = providers[0].tree(objects, defaults{})
		g.Expect(err).To(MatchError(ContainSubstring(problem)))
	}
}
