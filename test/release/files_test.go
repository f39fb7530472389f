// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// policyFile is an admission policy that a user may apply.
const policyFile = "policy-keep-workers.yaml"

// TestContractFiles checks which files a release has, and what is in those that are no components.
func TestContractFiles(t *testing.T) {
	t.Run("CTL-1 CTL-2 clusterctl finds both providers by name, with the configuration that the release brings", checkLocalRepository)
	t.Run("CTL-3 CTL-4 CTL-30 the assets are called what clusterctl asks for, and the local repository has the same", checkAssets)
	t.Run("CTL-5 metadata.yaml gives the version's contract", checkMetadata)
	t.Run("OP-2 each ConfigMap holds the components and the metadata, and is small enough", func(t *testing.T) {
		forEachProvider(t, checkConfigMap)
	})
}

func checkLocalRepository(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("CLUSTERCTL_REPOSITORY_PATH", filepath.Join(released, "repository"))
	client, err := config.New(t.Context(), filepath.Join(released, "repository", "clusterctl.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, p := range providers {
		found, err := client.Providers().Get(providerName, p.kind)
		g.Expect(err).NotTo(HaveOccurred())
		local, err := repository.New(t.Context(), found, client)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(local.DefaultVersion()).To(Equal(version))
		g.Expect(local.GetVersions(t.Context())).To(ConsistOf(version))
		components, err := local.Components().Get(t.Context(), repository.ComponentsOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(components.Objs()).NotTo(BeEmpty())
		metadata, err := local.Metadata(version).Get(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(metadata.ReleaseSeries).NotTo(BeEmpty())
	}
}

func checkAssets(t *testing.T) {
	g := NewWithT(t)
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	want := []string{
		"metadata.yaml", "bootstrap-components.yaml", "control-plane-components.yaml", "bootstrap-configmap.yaml", "control-plane-configmap.yaml",
		"bootstrap-sbom.cdx.json", "control-plane-sbom.cdx.json", policyFile,
	}
	g.Expect(read(t, released, policyFile)).To(Equal(read(t, root, path.Join("config", "policy", policyFile))))
	templates, err := os.ReadDir(filepath.Join(root, "templates"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, template := range templates {
		want = append(want, template.Name())
		g.Expect(read(t, released, template.Name())).To(Equal(read(t, root, path.Join("templates", template.Name()))))
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, released, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	g.Expect(sums).To(HaveLen(len(want)))
	for _, name := range want {
		sum := sha256.Sum256(read(t, released, name))
		g.Expect(sums).To(HaveKeyWithValue(name, hex.EncodeToString(sum[:])))
	}
	for _, p := range providers {
		local := filepath.Join(released, "repository", p.label(), version)
		g.Expect(read(t, local, p.components())).To(Equal(read(t, released, p.components())))
		g.Expect(read(t, local, "metadata.yaml")).To(Equal(read(t, released, "metadata.yaml")))
	}
}

func checkMetadata(t *testing.T) {
	g := NewWithT(t)
	metadata := &clusterctlv1.Metadata{}
	g.Expect(yaml.UnmarshalStrict(read(t, released, "metadata.yaml"), metadata)).To(Succeed())
	g.Expect(metadata.APIVersion).To(Equal(clusterctlv1.GroupVersion.String()))
	g.Expect(metadata.Kind).To(Equal("Metadata"))
	series := metadata.GetReleaseSeriesForVersion(versionutil.MustParseSemantic(version))
	g.Expect(series).NotTo(BeNil())
	g.Expect(series.Contract).To(Equal(clusterv1.GroupVersion.Version))
}

func checkConfigMap(t *testing.T, p provider) {
	g := NewWithT(t)
	object := &corev1.ConfigMap{}
	g.Expect(yaml.UnmarshalStrict(read(t, released, strings.Replace(p.components(), "components", "configmap", 1)), object)).To(Succeed())
	g.Expect(object.Labels).To(HaveKeyWithValue("provider.cluster.x-k8s.io/version", version))
	g.Expect(object.Data["components"]).To(Equal(string(read(t, released, p.components()))))
	g.Expect(object.Data["metadata"]).To(Equal(string(read(t, released, "metadata.yaml"))))
	g.Expect(len(object.Data["components"]) + len(object.Data["metadata"])).To(BeNumerically("<=", 1<<20))
}

// TestBillOfMaterials: it names what is linked into the manager, with versions and checksums, and nothing that only other programs use.
func TestBillOfMaterials(t *testing.T) {
	for _, p := range providers {
		g := NewWithT(t)
		var bom struct {
			Components []struct {
				Name, Version, Purl string
				Hashes              []struct{ Content string }
			}
		}
		g.Expect(json.Unmarshal(read(t, released, strings.Replace(p.components(), "components.yaml", "sbom.cdx.json", 1)), &bom)).To(Succeed())
		names := map[string]string{}
		for _, component := range bom.Components {
			names[component.Name] = component.Version
			g.Expect(component.Purl).To(HavePrefix("pkg:golang/" + component.Name + "@"))
			if component.Name != "std" {
				g.Expect(component.Hashes).To(HaveLen(1), component.Name)
			}
		}
		g.Expect(names).To(And(HaveKey("std"), HaveKeyWithValue("sigs.k8s.io/controller-runtime", HavePrefix("v0."))))
		g.Expect(names).NotTo(HaveKey("github.com/CycloneDX/cyclonedx-go"))
	}
}

// TestReproducible: the same sources give the same bytes, in another folder and over an earlier release.
func TestReproducible(t *testing.T) {
	g := NewWithT(t)
	again := t.TempDir()
	for range 2 {
		g.Expect(build(t.Context(), again)).To(Succeed())
		first, second := os.DirFS(released), os.DirFS(again)
		g.Expect(filesOf(t, second)).To(Equal(filesOf(t, first)))
		for _, name := range filesOf(t, first) {
			want, err := fs.ReadFile(first, name)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := fs.ReadFile(second, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bytes.Equal(got, want)).To(BeTrue(), name)
		}
	}
}

func filesOf(t *testing.T, folder fs.FS) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return names
}
