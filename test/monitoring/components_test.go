// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestComponents builds a kustomization with all components, as docs/guides/monitoring.md has it: what is in their files comes out of it.
func TestComponents(t *testing.T) {
	g := NewWithT(t)
	objects := build(t, "metrics", "alerts", "dashboards")
	var names []string
	for key, object := range objects {
		names = append(names, key)
		if object.GetKind() != "ClusterRole" {
			g.Expect(object.GetNamespace()).To(Equal("monitoring"), key)
		}
	}
	g.Expect(names).To(ConsistOf(
		"ClusterRole openshift-assisted-kube-state-metrics", "ConfigMap openshift-assisted-custom-resource-state",
		"ConfigMap openshift-assisted-dashboards", "PrometheusRule openshift-assisted",
	))
	for name, files := range map[string][]string{
		"openshift-assisted-custom-resource-state": {"metrics/custom_resource_state.yaml"},
		"openshift-assisted-dashboards":            {"dashboards/cluster.json", "dashboards/fleet.json", "dashboards/managers.json"},
	} {
		data, _, err := unstructured.NestedStringMap(objects["ConfigMap "+name].Object, "data")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(data).To(HaveLen(len(files)))
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(root, "config", file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(data).To(HaveKeyWithValue(filepath.Base(file), string(content)))
		}
	}
}

// TestRightsOfKubeStateMetrics: it may read our kinds and their definitions, and nothing else.
func TestRightsOfKubeStateMetrics(t *testing.T) {
	g := NewWithT(t)
	want := []string{"apiextensions.k8s.io/customresourcedefinitions"}
	for _, provider := range []string{"bootstrap", "controlplane"} {
		crds, err := crdschema.ReadFolder(filepath.Join(root, "config", provider, "crd/bases"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, crd := range crds {
			want = append(want, crd.Spec.Group+"/"+crd.Spec.Names.Plural)
		}
	}
	rules, _, err := unstructured.NestedSlice(build(t, "metrics")["ClusterRole openshift-assisted-kube-state-metrics"].Object, "rules")
	g.Expect(err).NotTo(HaveOccurred())
	var may []string
	for _, rule := range rules {
		fields := rule.(map[string]any)
		g.Expect(fields["verbs"]).To(ConsistOf("list", "watch"))
		for _, resource := range fields["resources"].([]any) {
			may = append(may, fmt.Sprintf("%s/%s", fields["apiGroups"].([]any)[0], resource))
		}
	}
	g.Expect(may).To(ConsistOf(want))
}

// build returns what a kustomization with components below config makes, by kind and name.
func build(t *testing.T, components ...string) map[string]unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	tools, err := localcontrolplane.NewTools(os.Stderr)
	g.Expect(err).NotTo(HaveOccurred())
	kustomize, err := tools.Path(t.Context(), "kustomize")
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	// kustomize takes no absolute paths.
	g.Expect(os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(root, "config")))).To(Succeed())
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: monitoring\ncomponents:\n"
	for _, component := range slices.Sorted(slices.Values(components)) {
		text += "- config/" + component + "\n"
	}
	g.Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600)).To(Succeed())
	output, err := exec.CommandContext(t.Context(), kustomize, "build", folder).Output()
	g.Expect(err).NotTo(HaveOccurred())
	list, err := utilyaml.ToUnstructured(output)
	g.Expect(err).NotTo(HaveOccurred())
	objects := map[string]unstructured.Unstructured{}
	for _, object := range list {
		objects[object.GetKind()+" "+object.GetName()] = object
	}
	return objects
}
