// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// valueOf returns a value for a variable of a template that has no default; ok is false for one that has.
func valueOf(template, variable string, authority []byte) (value string, ok bool) {
	network := "192.0.2."
	if strings.HasSuffix(template, "-ipv6.yaml") {
		network = "2001:db8::"
	}
	values := map[string]string{
		"OPENSHIFT_BASE_DOMAIN":           "example.com",
		"OPENSHIFT_API_VIP":               network + "5",
		"OPENSHIFT_INGRESS_VIP":           network + "6",
		"OPENSHIFT_API_ENDPOINT_HOST":     network + "5",
		"OPENSHIFT_NETWORK_CONFIG":        "6f1c0a52d0e84b1f",
		"OPENSHIFT_TRUST_BUNDLE":          strings.ReplaceAll(string(authority), "\n", `\n`),
		"OPENSHIFT_COREOS_IMAGE_URL":      "https://images.example.com/rhcos-openstack.x86_64.qcow2",
		"OPENSHIFT_COREOS_IMAGE_CHECKSUM": "8f3b1c0d5e7a9264b1f0c3d2e5a7968b8f3b1c0d5e7a9264b1f0c3d2e5a7968b",
		"OPENSHIFT_RELEASE_MIRROR":        "registry.example.com/openshift/release-images",
		"OPENSHIFT_COMPONENTS_MIRROR":     "registry.example.com/openshift/release",
		"OPENSHIFT_RELEASE_IMAGE": "registry.example.com/ocp/release@sha256:8f3b1c0d5e7a9264b1f0c3d2e5a7968b" +
			"8f3b1c0d5e7a9264b1f0c3d2e5a7968b",
	}
	value, ok = values[variable]
	return value, ok
}

// documentedVariable is a name in the list of variables that every template begins with.
var documentedVariable = regexp.MustCompile(`(?m)^#   ([A-Z][A-Z0-9_]+)`)

// checkTemplates renders every template of a folder and lets the API server, with all webhooks, look at the result.
func checkTemplates(t *testing.T, cp *localcontrolplane.ControlPlane, repository *Repository, folder string) {
	g := NewWithT(t)
	kubectl := func(args ...string) {
		t.Helper()
		_, err := cp.Run(t.Context(), "kubectl", nil, args...)
		g.Expect(err).NotTo(HaveOccurred())
	}
	kubectl("create", "namespace", "templates")
	classes, err := filepath.Glob(filepath.Join(folder, "clusterclass-*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, class := range classes {
		kubectl("apply", "--namespace=templates", "--filename="+class)
	}
	kubectl("wait", "--namespace=templates", "clusterclass", "--all",
		"--for=condition="+clusterv1.ClusterClassVariablesReadyCondition, "--timeout="+(2*time.Minute).String())

	templates, err := filepath.Glob(filepath.Join(folder, "cluster-template*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(templates)).To(BeNumerically(">=", 3))
	for _, template := range templates {
		name := filepath.Base(template)
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text, err := os.ReadFile(template)
			g.Expect(err).NotTo(HaveOccurred())
			var documented, environment []string
			for _, match := range documentedVariable.FindAllStringSubmatch(string(text), -1) {
				documented = append(documented, match[1])
				if value, ok := valueOf(name, match[1], cp.Admin().CAData); ok {
					environment = append(environment, match[1]+"="+value)
				}
			}
			listed, err := repository.Clusterctl(t.Context(), cp, nil, "generate", "cluster", "demo", "--from", template, "--list-variables")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(documented).To(ConsistOf(variablesIn(listed)), "the documented variables are those that are used")

			rendered, err := repository.Clusterctl(t.Context(), cp, environment, "generate", "cluster", "demo", "--from", template,
				"--target-namespace", "templates", "--kubernetes-version", "v1.33.4",
				"--control-plane-machine-count", "3", "--worker-machine-count", "2")
			g.Expect(err).NotTo(HaveOccurred())
			file := filepath.Join(t.TempDir(), name)
			g.Expect(os.WriteFile(file, []byte(rendered), 0o600)).To(Succeed())
			_, err = cp.Run(t.Context(), "kubectl", nil, "apply", "--dry-run=server", "--filename="+file)
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// variablesIn reads the names from what `clusterctl generate cluster --list-variables` prints, one a line with a leading dash.
func variablesIn(listed string) []string {
	var names []string
	for line := range strings.Lines(listed) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			names = append(names, strings.Fields(name)[0])
		}
	}
	return names
}
