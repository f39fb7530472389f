// SPDX-License-Identifier: Apache-2.0

package release

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

// commonVariables are Cluster API's (CONTRACT CTL-31); all others have the project's prefix.
var commonVariables = []string{
	"NAMESPACE", "CLUSTER_NAME", "KUBERNETES_VERSION", "CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT",
}

const ownPrefix = "OPENSHIFT_"

// namespaceLine is the namespace of an object in a template.
var namespaceLine = regexp.MustCompile(`(?m)^  namespace: (.*)$`)

// TestContractTemplates checks the texts of the templates; test/clusterctl renders them.
func TestContractTemplates(t *testing.T) {
	t.Run("CTL-31 CTL-33 templates have Cluster API's variables, or the project's prefix, and one namespace", func(t *testing.T) {
		g := NewWithT(t)
		templates, err := filepath.Glob(filepath.Join(released, "cluster-template*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		names := make([]string, 0, len(templates))
		for _, template := range templates {
			names = append(names, filepath.Base(template))
			text := read(t, released, filepath.Base(template))
			variables, err := yamlprocessor.NewSimpleProcessor().GetVariables(text)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(variables).NotTo(BeEmpty())
			for _, variable := range variables {
				g.Expect(variable).To(Or(BeElementOf(commonVariables), HavePrefix(ownPrefix)), filepath.Base(template))
			}
			for _, match := range namespaceLine.FindAllSubmatch(text, -1) {
				g.Expect(string(match[1])).To(Equal("${NAMESPACE}"), filepath.Base(template))
			}
			objects := strings.Count(string(text), "\nkind: ")
			g.Expect(namespaceLine.FindAll(text, -1)).To(HaveLen(objects), "every object of %s has a namespace", filepath.Base(template))
		}
		g.Expect(names).To(ContainElements(
			"cluster-template.yaml", "cluster-template-compact.yaml", "cluster-template-sno.yaml", "cluster-template-topology.yaml",
		))
	})
	t.Run("CTL-32 cluster classes have no variables of the environment", func(t *testing.T) {
		g := NewWithT(t)
		classes, err := filepath.Glob(filepath.Join(released, "clusterclass-*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(classes).NotTo(BeEmpty())
		for _, class := range classes {
			variables, err := yamlprocessor.NewSimpleProcessor().GetVariables(read(t, released, filepath.Base(class)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(variables).To(BeEmpty(), filepath.Base(class))
		}
	})
}
