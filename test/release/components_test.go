// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os/exec"
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

// label is clusterctl's name for the provider and the value of its label (CONTRACT CTL-1, CTL-11).
func (p provider) label() string { return clusterctlv1.ManifestLabel(providerName, p.kind) }

var providers = []provider{
	{"bootstrap", "openshift-assisted-bootstrap", clusterctlv1.BootstrapProviderType},
	{"controlplane", "openshift-assisted-control-plane", clusterctlv1.ControlPlaneProviderType},
}

// rendered returns a provider's components file before clusterctl touches it.
func rendered(t *testing.T, p provider) []byte {
	t.Helper()
	g := NewWithT(t)
	tools, err := localcontrolplane.NewTools(t.Output())
	g.Expect(err).NotTo(HaveOccurred())
	kustomize, err := tools.Path(t.Context(), "kustomize")
	g.Expect(err).NotTo(HaveOccurred())
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(t.Context(), kustomize, "build", filepath.Join(root, "config", p.folder, "default")).Output()
	g.Expect(err).NotTo(HaveOccurred())
	return out
}

// installed returns what clusterctl makes of a provider's components file, with nothing set in its environment.
func installed(t *testing.T, p provider, namespace string) repository.Components {
	t.Helper()
	g := NewWithT(t)
	reader := config.NewMemoryReader()
	client, err := config.New(t.Context(), "", config.InjectReader(reader))
	g.Expect(err).NotTo(HaveOccurred())
	components, err := repository.NewComponents(repository.ComponentsInput{
		Provider:     config.NewProvider(providerName, "https://example.com", p.kind),
		ConfigClient: client,
		Processor:    yamlprocessor.NewSimpleProcessor(),
		RawYaml:      rendered(t, p),
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

// TestObjects checks names, labels and namespaces (CONTRACT CTL-10, CTL-11, CTL-15).
func TestObjects(t *testing.T) {
	seen := map[string]bool{}
	forEachProvider(t, func(t *testing.T, p provider) {
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
	})
}

func TestContractLabels(t *testing.T) {
	t.Run("BOOT-5 CP-3 every CRD names its served versions for this contract and for no older one", func(t *testing.T) {
		forEachProvider(t, func(t *testing.T, p provider) {
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
		})
	})
}

// TestAnotherNamespace checks that nothing refers to the default namespace once the user has chosen another one (CONTRACT CTL-13).
func TestAnotherNamespace(t *testing.T) {
	forEachProvider(t, func(t *testing.T, p provider) {
		g := NewWithT(t)
		components, err := installed(t, p, "elsewhere").Yaml()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(components)).NotTo(ContainSubstring(p.namespace()))
	})
}

// TestImages checks that users can override the images (CONTRACT CTL-17).
func TestImages(t *testing.T) {
	forEachProvider(t, func(t *testing.T, p provider) {
		NewWithT(t).Expect(installed(t, p, "").Images()).To(ConsistOf("ghcr.io/capi-openshift/" + p.folder + "-openshift-assisted:dev"))
	})
}

// TestVariables checks that no variable has to be set (CONTRACT CTL-16); installed would fail else.
func TestVariables(t *testing.T) {
	forEachProvider(t, func(t *testing.T, p provider) {
		NewWithT(t).Expect(installed(t, p, "").Variables()).To(ConsistOf("CAPI_DIAGNOSTICS_ADDRESS", "CAPI_INSECURE_DIAGNOSTICS"))
	})
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
