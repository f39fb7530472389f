// SPDX-License-Identifier: Apache-2.0

// Package templates checks the shipped cluster templates and the ClusterClass: their variables, and that an API server with the webhooks of
// Cluster API and of both providers takes what clusterctl makes of them.
package templates

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	classFile = "clusterclass-openshift-assisted.yaml"

	// shortestInstallation is what a health check has to leave a host: discovery, writing the image and two reboots, with a margin.
	shortestInstallation = 7200
)

// commonVariables are those that all templates of Cluster API have; ours add OPENSHIFT_*.
var commonVariables = []string{"NAMESPACE", "CLUSTER_NAME", "KUBERNETES_VERSION", "CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT"}

var (
	usedVariable       = regexp.MustCompile(`\$\{([^}:]+)(?::=([^}]*))?\}`)
	documentedVariable = regexp.MustCompile(`(?m)^#   ([A-Z][A-Z0-9_]*)(?:,|\s|$)`)
)

// read returns a file of the templates folder in two parts: the comment at its head, and the rest.
func read(t *testing.T, name string) (header, body string) {
	t.Helper()
	g := NewWithT(t)
	root, err := localcontrolplane.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(root, "templates", name))
	g.Expect(err).NotTo(HaveOccurred())
	header, body, found := strings.Cut(string(data), "\napiVersion:")
	g.Expect(found).To(BeTrue())
	return header, "apiVersion:" + body
}

// file is the name of a flavor's template.
func file(flavor string) string {
	if flavor == "" {
		return "cluster-template.yaml"
	}
	return "cluster-template-" + flavor + ".yaml"
}

// flavors are all templates, with the default one, whose name is empty.
func flavors() []string { return append([]string{""}, sandbox.Flavors()...) }

func TestContractVariables(t *testing.T) {
	for _, flavor := range flavors() {
		t.Run(file(flavor), func(t *testing.T) {
			header, body := read(t, file(flavor))
			used := map[string]string{}
			for _, match := range usedVariable.FindAllStringSubmatch(body, -1) {
				used[match[1]] = match[2]
			}
			var documented []string
			for _, match := range documentedVariable.FindAllStringSubmatch(header, -1) {
				documented = append(documented, match[1])
			}
			t.Run("CTL-31 every variable is explained at the head of the template", func(t *testing.T) {
				NewWithT(t).Expect(documented).To(ConsistOf(slices.Collect(maps.Keys(used))))
				for name, value := range used {
					NewWithT(t).Expect(header).To(ContainSubstring(value), "the default of "+name)
				}
			})
			t.Run("CTL-31 every object is in the namespace that is asked for", func(t *testing.T) {
				for _, object := range strings.Split(body, "\n---\n") {
					NewWithT(t).Expect(object).To(ContainSubstring("\n  namespace: ${NAMESPACE}\n"))
				}
			})
			t.Run("CTL-31 variables are the common ones, or have the prefix of the product", func(t *testing.T) {
				for name := range used {
					NewWithT(t).Expect(slices.Contains(commonVariables, name) || strings.HasPrefix(name, "OPENSHIFT_")).To(BeTrue(), name)
				}
			})
		})
	}
}

func TestContractFlavors(t *testing.T) {
	t.Run("CTL-33 there is a template for each way to install a cluster", func(t *testing.T) {
		NewWithT(t).Expect(sandbox.Flavors()).To(ConsistOf("compact", "sno", "topology", "static-ip", "ipv6", "disconnected"))
	})
	t.Run("CTL-32 the ClusterClass has variables of its own and none of the environment", func(t *testing.T) {
		header, body := read(t, classFile)
		NewWithT(t).Expect(header + body).NotTo(ContainSubstring("${"))
		NewWithT(t).Expect(class(t).Spec.Variables).NotTo(BeEmpty())
	})
	t.Run("CORE-31 health checks leave a host the time of an installation", func(t *testing.T) {
		spec := class(t).Spec
		NewWithT(t).Expect(spec.ControlPlane.HealthCheck.IsDefined()).To(BeFalse(), "the provider does not replace control-plane Machines")
		for _, deployment := range spec.Workers.MachineDeployments {
			timeout := ptr.Deref(deployment.HealthCheck.Checks.NodeStartupTimeoutSeconds, -1)
			NewWithT(t).Expect(timeout).To(Or(BeZero(), BeNumerically(">=", shortestInstallation)))
		}
	})
	t.Run("CORE-31 and templates with workers say so", func(t *testing.T) {
		for _, flavor := range flavors() {
			header, body := read(t, file(flavor))
			if strings.Contains(body, "kind: MachineDeployment\n") {
				NewWithT(t).Expect(header).To(ContainSubstring("nodeStartupTimeoutSeconds to 7200 or more, or to 0"), flavor)
			}
		}
	})
}

// class is the shipped ClusterClass, in which a field that does not exist is an error.
func class(t *testing.T) *clusterv1.ClusterClass {
	t.Helper()
	_, body := read(t, classFile)
	class := &clusterv1.ClusterClass{}
	err := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(body), len(body)).Decode(class)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return class
}
