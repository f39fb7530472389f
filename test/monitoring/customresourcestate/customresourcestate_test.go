// SPDX-License-Identifier: Apache-2.0

package customresourcestate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/crdschema"
	"github.com/capi-openshift/agent-providers/test/golden"
	"github.com/capi-openshift/agent-providers/test/monitoring/customresourcestate"
)

const (
	root       = "../../.."
	configFile = root + "/config/metrics/custom_resource_state.yaml"
)

// folders have the CRDs of our kinds.
var folders = []string{root + "/config/bootstrap/crd/bases", root + "/config/controlplane/crd/bases"}

func read(t *testing.T) *customresourcestate.Config {
	t.Helper()
	config, err := customresourcestate.Read(configFile)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return config
}

// TestKinds: each of our kinds has its metrics, under the name that Cluster API would give them.
func TestKinds(t *testing.T) {
	g := NewWithT(t)
	var kinds, configured []string
	for _, folder := range folders {
		crds, err := crdschema.ReadFolder(folder)
		g.Expect(err).NotTo(HaveOccurred())
		for _, crd := range crds {
			kinds = append(kinds, fmt.Sprintf("%s/%s %s", crd.Spec.Group, crd.Spec.Versions[0].Name, crd.Spec.Names.Kind))
		}
	}
	for _, resource := range read(t).Spec.Resources {
		gvk := resource.GroupVersionKind
		configured = append(configured, fmt.Sprintf("%s/%s %s", gvk.Group, gvk.Version, gvk.Kind))
		g.Expect(resource.MetricNamePrefix).To(Equal("openshift_assisted_" + strings.ToLower(gvk.Kind)))
		for _, metric := range resource.Metrics {
			g.Expect(metric.Help).NotTo(BeEmpty(), resource.Name(&metric))
		}
	}
	g.Expect(configured).To(ConsistOf(kinds))
}

// TestPaths: kube-state-metrics leaves out what a path does not find, so that a field that is renamed would go unseen.
func TestPaths(t *testing.T) {
	for _, resource := range read(t).Spec.Resources {
		t.Run(resource.GroupVersionKind.Kind, func(t *testing.T) {
			NewWithT(t).Expect(resource.CheckSchema(schemaOf(t, resource.GroupVersionKind.Kind))).To(Succeed())
		})
	}
}

// TestInstallPhases: a phase that the list does not have would be none.
func TestInstallPhases(t *testing.T) {
	g := NewWithT(t)
	var listed []string
	for _, resource := range read(t).Spec.Resources {
		for _, metric := range resource.Metrics {
			if metric.Name == "status_install_phase" {
				listed = metric.Each.StateSet.List
			}
		}
	}
	g.Expect(listed).To(ConsistOf(
		controlplanev1.InstallPhaseWaitingForHosts, controlplanev1.InstallPhasePreparing, controlplanev1.InstallPhaseInstalling,
		controlplanev1.InstallPhaseFinalizing, controlplanev1.InstallPhaseCompleted, controlplanev1.InstallPhaseFailed,
	))
}

// TestObjects evaluates the configuration against objects that the sandbox's managers have left: those of a cluster of a ClusterClass with
// a worker (TEMPLATE=topology HOLD=true), and of one whose host is not recognised (FAULT=wrong-mac TOPOLOGY=sno HOLD=true). The second
// has the annotation cluster.x-k8s.io/paused and a deletionTimestamp besides, which nobody had.
func TestObjects(t *testing.T) {
	for _, name := range []string{"installed", "wrong-mac"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			g.Expect(err).NotTo(HaveOccurred())
			objects, err := utilyaml.ToUnstructured(data)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects).NotTo(BeEmpty())
			config := read(t)
			var lines []string
			for i := range objects {
				samples, err := config.Evaluate(&objects[i])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(samples).NotTo(BeEmpty(), objects[i].GetKind())
				for _, sample := range samples {
					lines = append(lines, sample.String())
				}
			}
			slices.Sort(lines)
			g.Expect(slices.Compact(slices.Clone(lines))).To(HaveLen(len(lines)), "a series is there twice")
			golden.Compare(t, name+".metrics", strings.Join(lines, "\n")+"\n")
		})
	}
}

// TestAnotherKind: an object of another kind has no metrics.
func TestAnotherKind(t *testing.T) {
	g := NewWithT(t)
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	g.Expect(read(t).Evaluate(object)).To(BeEmpty())
}
