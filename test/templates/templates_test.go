// SPDX-License-Identifier: Apache-2.0

// Package templates checks what the shipped templates say to their users and what becomes of the ClusterClass's variables, and installs
// clusters from those that no other test installs. test/release checks their form, test/clusterctl renders and applies all of them,
// test/contract/topology installs from the ClusterClass.
package templates

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	classFile = "clusterclass-openshift-assisted.yaml"

	// shortestInstallation is what a health check has to leave a host: discovery, writing the image and two reboots, with a margin.
	shortestInstallation = 7200
)

var variableWithDefault = regexp.MustCompile(`\$\{([^}:]+):=([^}]*)\}`)

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

// headLine is a line at the head of a template that names a variable; a comma after the name says that the next line has the same text.
var headLine = regexp.MustCompile(`^#   ([A-Z][A-Z0-9_]+)(,?)(?: |$)`)

// described returns what the head of a template says of each variable.
func described(header string) map[string]string {
	texts := map[string]string{}
	var entry []string
	joined := false
	for line := range strings.Lines(header) {
		if match := headLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); match != nil {
			if !joined {
				entry = nil
			}
			if entry = append(entry, match[1]); joined {
				texts[match[1]] = texts[entry[0]]
			}
			joined = match[2] != ""
			line = strings.TrimPrefix(line, match[0])
		}
		for _, name := range entry {
			texts[name] += line
		}
	}
	return texts
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

func TestContractGuidance(t *testing.T) {
	t.Run("CTL-31 every default is named at the head of its template", func(t *testing.T) {
		for _, flavor := range flavors() {
			header, body := read(t, file(flavor))
			texts := described(header)
			for _, match := range variableWithDefault.FindAllStringSubmatch(body, -1) {
				NewWithT(t).Expect(texts[match[1]]).
					To(MatchRegexp(`[( ]`+regexp.QuoteMeta(match[2])+`[,;)]`), "the default of %s in %s", match[1], file(flavor))
			}
		}
	})
	t.Run("CORE-31 health checks leave a host the time of an installation", func(t *testing.T) {
		spec := class(t).Spec
		checkStartup(t, "class", spec.ControlPlane.HealthCheck.Checks.NodeStartupTimeoutSeconds)
		for _, deployment := range spec.Workers.MachineDeployments {
			checkStartup(t, "class", deployment.HealthCheck.Checks.NodeStartupTimeoutSeconds)
		}
	})
	t.Run("CORE-31 and so do those of templates, and templates with workers and without a check say it", func(t *testing.T) {
		for _, flavor := range flavors() {
			header, body := read(t, file(flavor))
			checks := 0
			for _, text := range strings.Split(body, "\n---\n") {
				if !strings.Contains(text, "\nkind: MachineHealthCheck\n") {
					continue
				}
				checks++
				check := &clusterv1.MachineHealthCheck{}
				NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(text), check)).To(Succeed(), flavor)
				checkStartup(t, flavor, check.Spec.Checks.NodeStartupTimeoutSeconds)
			}
			if checks == 0 && strings.Contains(body, "kind: MachineDeployment\n") {
				NewWithT(t).Expect(header).To(ContainSubstring("nodeStartupTimeoutSeconds to 7200 or more, or to 0"), flavor)
			}
		}
	})
}

// checkStartup fails when a health check gives up hosts that are being installed.
func checkStartup(t *testing.T, where string, seconds *int32) {
	t.Helper()
	NewWithT(t).Expect(ptr.Deref(seconds, -1)).To(Or(BeZero(), BeNumerically(">=", shortestInstallation)), where)
}

// class is the shipped ClusterClass, as Cluster API has it once it has read the variables.
func class(t *testing.T) *clusterv1.ClusterClass {
	t.Helper()
	_, body := read(t, classFile)
	class := &clusterv1.ClusterClass{}
	first, _, _ := strings.Cut(body, "\n---\n")
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(first), class)).To(Succeed())
	class.Namespace = "ns"
	for _, variable := range class.Spec.Variables {
		class.Status.Variables = append(class.Status.Variables, clusterv1.ClusterClassStatusVariable{
			Name: variable.Name, DefinitionsConflict: ptr.To(false), Definitions: []clusterv1.ClusterClassStatusVariableDefinition{
				{From: clusterv1.VariableDefinitionFromInline, Required: variable.Required, Schema: variable.Schema},
			},
		})
	}
	return class
}
