// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

const (
	providerName = "openshift-assisted"
	version      = "v0.1.0"
)

// provider is one of the two that are released.
type provider struct {
	folder string // below config/
	prefix string // of every name
	kind   clusterctlv1.ProviderType
}

func (p provider) namespace() string { return p.prefix + "-system" }

// components is the name of its file.
func (p provider) components() string {
	return strings.TrimSuffix(p.label(), "-"+providerName) + "-components.yaml"
}

// image is the default image of the provider, without a tag.
func (p provider) image() string { return "ghcr.io/capi-openshift/" + p.folder + "-openshift-assisted" }

// label is clusterctl's name for the provider and the value of its label (CONTRACT CTL-1, CTL-11).
func (p provider) label() string { return clusterctlv1.ManifestLabel(providerName, p.kind) }

var providers = []provider{
	{"bootstrap", "openshift-assisted-bootstrap", clusterctlv1.BootstrapProviderType},
	{"controlplane", "openshift-assisted-control-plane", clusterctlv1.ControlPlaneProviderType},
}

// released is a folder with what `make release` writes.
var released string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "release-")
	if err == nil {
		defer os.RemoveAll(dir)
		released = filepath.Join(dir, version)
		err = build(context.Background(), released)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(ctx context.Context, out string, args ...string) error {
	tools, err := localcontrolplane.NewTools(os.Stderr)
	if err != nil {
		return err
	}
	return Build(ctx, tools, version, out, args...)
}

// read returns a file of a release.
func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

// installed returns what clusterctl makes of a provider's components file, with nothing set in its environment.
func installed(t *testing.T, p provider, namespace string) repository.Components {
	t.Helper()
	return componentsOf(t, p, released, namespace, "")
}

// componentsOf returns what clusterctl makes of the components file of a release, with image overrides as in its configuration.
func componentsOf(t *testing.T, p provider, folder, namespace, images string) repository.Components {
	t.Helper()
	g := NewWithT(t)
	reader := config.NewMemoryReader()
	client, err := config.New(t.Context(), "", config.InjectReader(reader))
	g.Expect(err).NotTo(HaveOccurred())
	reader.Set("images", images)
	components, err := repository.NewComponents(repository.ComponentsInput{
		Provider:     config.NewProvider(providerName, "https://example.com", p.kind),
		ConfigClient: client,
		Processor:    yamlprocessor.NewSimpleProcessor(),
		RawYaml:      read(t, folder, p.components()),
		Options:      repository.ComponentsOptions{Version: version, TargetNamespace: namespace},
	})
	g.Expect(err).NotTo(HaveOccurred())
	return components
}

func forEachProvider(t *testing.T, check func(t *testing.T, p provider)) {
	t.Helper()
	for _, p := range providers {
		t.Run(p.folder, func(t *testing.T) { check(t, p) })
	}
}

// TestContractComponents checks the components files as clusterctl reads them.
func TestContractComponents(t *testing.T) {
	t.Run(
		"CTL-10 CTL-11 CTL-15 every object has the provider's label, prefix and one namespace, and no other object's name",
		func(t *testing.T) {
			seen := map[string]bool{}
			forEachProvider(t, func(t *testing.T, p provider) { checkObjects(t, p, seen) })
		},
	)
	t.Run("CTL-13 nothing refers to the default namespace once the user has chosen another one", func(t *testing.T) {
		forEachProvider(t, func(t *testing.T, p provider) {
			g := NewWithT(t)
			components, err := installed(t, p, "elsewhere").Yaml()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(components)).NotTo(ContainSubstring(p.namespace()))
		})
	})
	t.Run("CTL-14 OP-5 the one container of the one Deployment is called manager", func(t *testing.T) { forEachProvider(t, checkDeployment) })
	t.Run("CTL-16 there are no variables, so that kubectl can apply the files as they are", func(t *testing.T) {
		forEachProvider(t, func(t *testing.T, p provider) {
			g := NewWithT(t)
			g.Expect(installed(t, p, "").Variables()).To(BeEmpty())
			g.Expect(string(read(t, released, p.components()))).NotTo(ContainSubstring("${"))
		})
	})
	t.Run("CTL-17 the image is the release's, another one by tag or digest, or where clusterctl's configuration says", checkImages)
	t.Run(
		"BOOT-5 CP-3 every CRD names its served versions for this contract and for no older one",
		func(t *testing.T) { forEachProvider(t, checkContractLabel) },
	)
	t.Run("CTL-50 the webhooks' certificate comes from cert-manager, for the Service's names, into the pod", func(t *testing.T) {
		forEachProvider(t, checkCertificate)
	})
}

func checkObjects(t *testing.T, p provider, seen map[string]bool) {
	t.Helper()
	g := NewWithT(t)
	namespaces := 0
	for _, object := range installed(t, p, "").Objs() {
		id := object.GetKind() + "/" + object.GetName()
		g.Expect(object.GetLabels()).To(HaveKeyWithValue(clusterctlProviderLabel, p.label()), id)
		g.Expect(seen[id]).To(BeFalse(), "%s is in both providers", id)
		seen[id] = true
		if object.GetKind() == "CustomResourceDefinition" {
			continue
		}
		g.Expect(object.GetName()).To(HavePrefix(p.prefix+"-"), id)
		if object.GetKind() == "Namespace" {
			namespaces++
			g.Expect(object.GetName()).To(Equal(p.namespace()))
		}
		if object.GetNamespace() != "" {
			g.Expect(object.GetNamespace()).To(Equal(p.namespace()), id)
		}
	}
	g.Expect(namespaces).To(Equal(1))
}

func checkImages(t *testing.T) {
	const digest = "@sha256:8f3b1c0d5e7a9264b1f0c3d2e5a7968b8f3b1c0d5e7a9264b1f0c3d2e5a7968b"
	mirrored := t.TempDir()
	args := []string{"-registry=mirror.example.com:5000/capi", "-control-plane-image=mirror.example.com/other/manager" + digest}
	NewWithT(t).Expect(build(t.Context(), mirrored, args...)).To(Succeed())
	forEachProvider(t, func(t *testing.T, p provider) {
		g := NewWithT(t)
		g.Expect(installed(t, p, "").Images()).To(ConsistOf(p.image() + ":" + version))
		overridden := componentsOf(t, p, released, "", "all: {repository: mirror.example.com/all}\n"+p.label()+": {tag: patched}")
		g.Expect(overridden.Images()).To(ConsistOf("mirror.example.com/all/" + p.folder + "-openshift-assisted:patched"))
		want := "mirror.example.com:5000/capi/bootstrap-openshift-assisted:" + version
		if p.folder == "controlplane" {
			want = "mirror.example.com/other/manager" + digest
		}
		g.Expect(componentsOf(t, p, mirrored, "", "").Images()).To(ConsistOf(want))
	})
}

// checkContractLabel checks that core finds the version of every kind that speaks its contract (CONTRACT BOOT-5, CP-3).
func checkContractLabel(t *testing.T, p provider) {
	g := NewWithT(t)
	crds := ofKind(installed(t, p, "").Objs(), "CustomResourceDefinition")
	g.Expect(crds).To(HaveLen(2))
	for _, crd := range crds {
		g.Expect(crd.GetLabels()).NotTo(HaveKey("cluster.x-k8s.io/v1beta1"))
		label := crd.GetLabels()["cluster.x-k8s.io/v1beta2"]
		g.Expect(label).NotTo(BeEmpty())
		for _, contractVersion := range strings.Split(label, "_") {
			g.Expect(servedVersions(t, crd)).To(ContainElement(contractVersion))
		}
	}
}

// clusterctlProviderLabel is the label by which clusterctl finds a provider's objects (CONTRACT CTL-11).
const clusterctlProviderLabel = "cluster.x-k8s.io/provider"

func ofKind(objects []unstructured.Unstructured, kinds ...string) []unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o unstructured.Unstructured) bool { return !slices.Contains(kinds, o.GetKind()) })
}

func servedVersions(t *testing.T, crd unstructured.Unstructured) []string {
	t.Helper()
	g := NewWithT(t)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	g.Expect(err).NotTo(HaveOccurred())
	var served []string
	for _, entry := range versions {
		fields := entry.(map[string]any)
		if fields["served"] == true {
			served = append(served, fields["name"].(string))
		}
	}
	return served
}
