// SPDX-License-Identifier: Apache-2.0

//go:build images

package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"
)

const (
	testVersion    = "v0.0.0-test"
	versionPackage = "github.com/capi-openshift/agent-providers/internal/version"
	versionFlags   = "-s -w -X " + versionPackage + ".stamped=" + testVersion + " -X " + versionPackage + ".revision=" + testRevision
)

// TestManagers makes the images of both managers for every platform, twice, and runs those of this one.
func TestManagers(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	g := NewWithT(t)
	out := t.TempDir()
	first := makeManagers(t, out)
	g.Expect(strings.Split(strings.TrimSpace(first), "\n")).To(HaveLen(len(programs)))
	for _, p := range programs {
		g.Expect(platformsIn(t, out, p)).To(ConsistOf("linux/amd64", "linux/arm64", "linux/ppc64le", "linux/s390x"))
		g.Expect(describes(t, out, p)).To(ContainSubstring(" " + testVersion + " (revision " + testRevision + ", go"))
	}
	g.Expect(makeManagers(t, t.TempDir())).To(Equal(first), "the same sources have the same digests")
}

// TestManagersWithFIPS makes those whose cryptography is Go's FIPS 140-3 module, for this platform.
func TestManagersWithFIPS(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	g := NewWithT(t)
	out := t.TempDir()
	g.Expect(makeManagers(t, out, "-platforms="+native.String(), "-fips=certified")).To(ContainSubstring(testVersion + "-fips@sha256:"))
	for _, p := range programs {
		g.Expect(describes(t, out, p)).To(ContainSubstring(", FIPS 140-3 module v"))
	}
}

func makeManagers(t *testing.T, out string, more ...string) string {
	t.Helper()
	progress := &bytes.Buffer{}
	arguments := append([]string{"-version=" + testVersion, "-revision=" + testRevision, "-out=" + out, "-ldflags=" + versionFlags}, more...)
	NewWithT(t).Expect(run(t.Context(), arguments, "1700000000", progress)).To(Succeed())
	return progress.String()
}

// imagesIn are the images of a program by platform.
func imagesIn(t *testing.T, out string, p program) map[string]v1.Image {
	t.Helper()
	g := NewWithT(t)
	layout, err := open(filepath.Join(out, p.image), testRegistry+"/"+p.image)
	g.Expect(err).NotTo(HaveOccurred())
	index, err := layout.top.ImageIndex(layout.images.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	images := map[string]v1.Image{}
	for _, descriptor := range manifest.Manifests {
		image, err := index.Image(descriptor.Digest)
		g.Expect(err).NotTo(HaveOccurred())
		images[descriptor.Platform.String()] = image
	}
	g.Expect(layout.artifacts).To(HaveLen(2*len(images)), "a bill of materials and a provenance for each image")
	return images
}

func platformsIn(t *testing.T, out string, p program) []string {
	t.Helper()
	var platforms []string
	for platform := range imagesIn(t, out, p) {
		platforms = append(platforms, platform)
	}
	return platforms
}

// describes is what the program in the image of this platform says with --version.
func describes(t *testing.T, out string, p program) string {
	t.Helper()
	g := NewWithT(t)
	image := imagesIn(t, out, p)[native.String()]
	files, _ := unpacked(t, image)
	g.Expect(files).To(And(HaveKey("LICENSE"), HaveKey("licenses/sigs.k8s.io/cluster-api/LICENSE"), HaveKey(rootsFile)))
	file := filepath.Join(t.TempDir(), managerFile)
	g.Expect(os.WriteFile(file, files[managerFile], 0o700)).To(Succeed())
	said, err := exec.CommandContext(t.Context(), file, "--version").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	return string(said)
}

// TestSignature signs with one key, and verifies with that and with another one, without Sigstore's public services.
func TestSignature(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", "")
	g := NewWithT(t)
	cosign := os.Getenv("COSIGN")
	g.Expect(cosign).To(BeAnExistingFile(), "make test-images sets COSIGN")
	s := demoSettings(t)
	_, layout, image := made(t, s)
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true)))
	defer server.Close()
	target := strings.TrimPrefix(server.URL, "http://") + "/owner"
	g.Expect(pushAll(t.Context(), s.out, target, io.Discard)).To(Succeed())
	ours, theirs := keyPair(t, cosign), keyPair(t, cosign)
	index, single := target+"/demo@"+layout.images.Digest.String(), target+"/demo@"+digestOf(t, image)
	verify := func(key string, arguments ...string) error {
		all := append([]string{arguments[0], "--key=" + filepath.Join(key, "cosign.pub"), "--insecure-ignore-tlog=true"}, arguments[1:]...)
		said, err := exec.CommandContext(t.Context(), cosign, all...).CombinedOutput()
		t.Logf("cosign %s: %s", strings.Join(all, " "), said)
		return err
	}
	g.Expect(verify(ours, "verify", index)).NotTo(Succeed(), "nothing is signed yet")
	g.Expect(signer{program: cosign, key: filepath.Join(ours, "cosign.key")}.signAll(t.Context(), s.out, target)).To(Succeed())
	for _, arguments := range [][]string{
		{"verify", index}, {"verify", single},
		{"verify-attestation", "--type=slsaprovenance1", single}, {"verify-attestation", "--type=spdxjson", single},
	} {
		g.Expect(verify(ours, arguments...)).To(Succeed(), arguments[0])
		g.Expect(verify(theirs, arguments...)).NotTo(Succeed(), arguments[0])
	}
}

// keyPair returns a folder with the files cosign.key and cosign.pub.
func keyPair(t *testing.T, cosign string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cosign, "generate-key-pair")
	cmd.Dir = t.TempDir()
	said, err := cmd.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(said))
	return cmd.Dir
}

func digestOf(t *testing.T, image v1.Image) string {
	t.Helper()
	digest, err := image.Digest()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return digest.String()
}
