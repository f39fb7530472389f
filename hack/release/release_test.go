// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

var bootstrap, controlPlane = providers[0], providers[1]

func TestNames(t *testing.T) {
	g := NewWithT(t)
	g.Expect(bootstrap.label()).To(Equal("bootstrap-openshift-assisted"))
	g.Expect(controlPlane.label()).To(Equal("control-plane-openshift-assisted"))
	g.Expect(bootstrap.componentsFile()).To(Equal("bootstrap-components.yaml"))
	g.Expect(controlPlane.componentsFile()).To(Equal("control-plane-components.yaml"))
}

func TestImage(t *testing.T) {
	for name, test := range map[string]struct {
		registry, version, override string
		want, err                   string
	}{
		"is named after registry, manager and version": {want: "ghcr.io/capi-openshift/controlplane-openshift-assisted:v0.1.0"},
		"comes from another registry": {
			registry: "mirror.example.com:5000/capi", want: "mirror.example.com:5000/capi/controlplane-openshift-assisted:v0.1.0",
		},
		"has a tag that registries accept": {version: "v0.1.0+build",
			want: "ghcr.io/capi-openshift/controlplane-openshift-assisted:v0.1.0_build"},
		"is replaced by a tag":               {override: "example.com/a/b:c", want: "example.com/a/b:c"},
		"is replaced by a digest":            {override: "example.com/a/b@" + digest, want: "example.com/a/b@" + digest},
		"is replaced by a tag and a digest":  {override: "example.com/a/b:c@" + digest, want: "example.com/a/b:c@" + digest},
		"needs a tag or a digest":            {override: "example.com/a/b", err: "neither a tag nor a digest"},
		"needs the full form of a reference": {override: "b:c", err: "no full reference"},
		"needs a registry that can be one":   {registry: "https://example.com", err: "no full reference"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := release{version: "v0.1.0", registry: defaultRegistry, images: map[string]string{"control-plane": test.override}}
			if test.registry != "" {
				r.registry = test.registry
			}
			if test.version != "" {
				r.version = test.version
			}
			image, err := r.image(controlPlane)
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(image).To(Equal(test.want))
		})
	}
}

func TestReplaceImage(t *testing.T) {
	g := NewWithT(t)
	out, err := replaceImage([]byte("a:\n  image: old:dev\nb: old:dev\n"), "old:dev", "new:v1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal("a:\n  image: new:v1\nb: old:dev\n"))
	for _, components := range []string{"image: other:dev\n", "image: old:dev2\n", "image: old:dev\nimage: old:dev\n"} {
		_, err := replaceImage([]byte(components), "old:dev", "new:v1")
		g.Expect(err).To(MatchError(ContainSubstring("want one")), components)
	}
}

func TestConfigMap(t *testing.T) {
	for name, test := range map[string]struct {
		size       int
		compressed bool
	}{
		"holds components as they are": {size: 1000},
		"is full":                      {size: maxConfigMapSize - len("series")},
		"holds compressed components":  {size: maxConfigMapSize - len("series") + 1, compressed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			components := strings.Repeat("a", test.size)
			data, err := configMap(controlPlane, "v0.1.0", []byte("series"), []byte(components))
			g.Expect(err).NotTo(HaveOccurred())
			object := &corev1.ConfigMap{}
			g.Expect(yaml.UnmarshalStrict(data, object)).To(Succeed())
			g.Expect(object.Name).To(Equal("control-plane-openshift-assisted-v0.1.0"))
			g.Expect(object.Namespace).To(BeEmpty())
			g.Expect(object.Labels).To(Equal(map[string]string{
				"provider.cluster.x-k8s.io/version": "v0.1.0", "provider.cluster.x-k8s.io/type": "control-plane",
				"provider.cluster.x-k8s.io/name": "openshift-assisted",
			}))
			g.Expect(object.Data).To(HaveKeyWithValue("metadata", "series"))
			if !test.compressed {
				g.Expect(object.Data["components"]).To(Equal(components))
				g.Expect(object.BinaryData).To(BeEmpty())
				g.Expect(object.Annotations).To(BeEmpty())
				return
			}
			g.Expect(object.Annotations).To(Equal(map[string]string{"provider.cluster.x-k8s.io/compressed": "true"}))
			g.Expect(object.Data).NotTo(HaveKey("components"))
			reader, err := gzip.NewReader(bytes.NewReader(object.BinaryData["components"]))
			g.Expect(err).NotTo(HaveOccurred())
			unpacked, err := io.ReadAll(reader)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(unpacked)).To(Equal(components))
		})
	}
}

func TestMetadata(t *testing.T) {
	for name, test := range map[string]struct{ version, metadata, err string }{
		"covers the version":         {version: "v0.1.7", metadata: "releaseSeries: [{major: 0, minor: 1, contract: v1beta2}]"},
		"covers a release candidate": {version: "v0.1.0-rc.1", metadata: "releaseSeries: [{major: 0, minor: 1, contract: v1beta2}]"},
		"lacks the version's series": {version: "v0.2.0", metadata: "releaseSeries: [{major: 0, minor: 1, contract: v1beta2}]",
			err: "no release series for v0.2.0"},
		"has another contract": {version: "v0.1.0", metadata: "releaseSeries: [{major: 0, minor: 1, contract: v1beta1}]",
			err: "with contract v1beta2"},
		"has a field that clusterctl refuses": {version: "v0.1.0", metadata: "series: []", err: "unknown field"},
		"needs a leading v":                   {version: "0.1.0", err: "leading v"},
		"needs three numbers":                 {version: "v0.1", err: "leading v"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(root, "metadata.yaml"), []byte(test.metadata), 0o600)).To(Succeed())
			data, err := release{root: root, version: test.version}.metadata()
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data)).To(Equal(test.metadata))
		})
	}
}

func TestTemplates(t *testing.T) {
	g := NewWithT(t)
	r := release{root: t.TempDir()}
	_, err := r.templates()
	g.Expect(err).To(MatchError(ContainSubstring("no templates")))
	add := func(name string) {
		file := filepath.Join(r.root, "templates", name)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(name), 0o600)).To(Succeed())
	}
	add("cluster-template.yaml")
	add("cluster-template-sno.yaml")
	add("clusterclass-demo.yaml")
	files, err := r.templates()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(Equal(map[string][]byte{
		"cluster-template.yaml": []byte("cluster-template.yaml"), "cluster-template-sno.yaml": []byte("cluster-template-sno.yaml"),
		"clusterclass-demo.yaml": []byte("clusterclass-demo.yaml"),
	}))
	add("sno.yaml")
	_, err = r.templates()
	g.Expect(err).To(MatchError(ContainSubstring("templates/sno.yaml")))
}

func TestChecksums(t *testing.T) {
	g := NewWithT(t)
	g.Expect(string(checksums(map[string][]byte{"b": []byte("hello\n"), "a": nil}))).To(Equal(
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n" +
			"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03  b\n"))
}

func TestRemoveRelease(t *testing.T) {
	g := NewWithT(t)
	out := filepath.Join(t.TempDir(), "release")
	g.Expect(removeRelease(out)).To(Succeed(), "there is none yet")
	g.Expect(os.Mkdir(out, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(out, "thesis"), nil, 0o600)).To(Succeed())
	g.Expect(removeRelease(out)).To(MatchError(ContainSubstring("no release")))
	g.Expect(filepath.Join(out, "thesis")).To(BeAnExistingFile())
	g.Expect(os.WriteFile(filepath.Join(out, "SHA256SUMS"), nil, 0o600)).To(Succeed())
	g.Expect(removeRelease(out)).To(Succeed())
	g.Expect(out).NotTo(BeADirectory())
}

func TestComponentOfAModule(t *testing.T) {
	g := NewWithT(t)
	c := component(
		"library", module{Path: "example.com/A/b", Version: "v1.2.3+incompatible", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
	)
	g.Expect(c.PackageURL).To(Equal("pkg:golang/example.com/A/b@v1.2.3%2Bincompatible"))
	g.Expect(*c.Hashes).To(HaveLen(1))
	g.Expect((*c.Hashes)[0].Value).To(Equal("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"))
	g.Expect(component("library", module{Path: "std", Version: "1.26.8"}).Hashes).To(BeNil())
	replaced := module{Path: "a", Replace: &module{Path: "b", Version: "v1.0.0"}}.replaced()
	g.Expect(replaced).To(Equal(module{Path: "b", Version: "v1.0.0"}))
}
