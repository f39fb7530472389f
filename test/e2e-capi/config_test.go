// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"
)

// provider is the name of both of this project's providers.
const provider = "openshift-assisted"

// loadConfig reads a configuration as the framework does. It puts values and environment variables in the place of ${NAME}, and it does not
// ask for the bootstrap and control-plane providers called kubeadm, without which the framework takes no configuration.
func loadConfig(ctx context.Context, file string, values map[string]string) *clusterctl.E2EConfig {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	loaded := &clusterctl.E2EConfig{}
	Expect(yaml.UnmarshalStrict([]byte(expand(file, string(data), values)), loaded)).To(Succeed())
	Expect(loaded.ResolveReleases(ctx)).To(Succeed())
	loaded.Defaults()
	loaded.AbsPaths(filepath.Dir(file))
	Expect(asKubeadm(loaded).Validate()).To(Succeed(), "%s is not valid", file)
	return loaded
}

func expand(file, text string, values map[string]string) string {
	GinkgoHelper()
	var missing []string
	text = os.Expand(text, func(name string) string {
		value, found := values[name]
		if !found {
			value, found = os.LookupEnv(name)
		}
		if !found && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return value
	})
	Expect(missing).To(BeEmpty(), "%s names variables that are not set: %s", file, strings.Join(missing, ", "))
	return text
}

// asKubeadm returns a copy in which our providers have the only names that Validate accepts.
func asKubeadm(own *clusterctl.E2EConfig) *clusterctl.E2EConfig {
	other := own.DeepCopy()
	other.Providers = slices.Clone(own.Providers)
	for i := range other.Providers {
		if other.Providers[i].Name == provider {
			other.Providers[i].Name = config.KubeadmBootstrapProviderName
		}
	}
	return other
}

// writeTemplates writes into folder the templates that only the specs need.
func writeTemplates(folder string) {
	GinkgoHelper()
	var parts []string
	for _, file := range []string{"../../templates/cluster-template-sno.yaml", "data/machine-health-check.yaml"} {
		part, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		parts = append(parts, string(part))
	}
	template := strings.Join(parts, "---\n")
	Expect(os.WriteFile(filepath.Join(folder, "cluster-template-md-remediation.yaml"), []byte(template), 0o600)).To(Succeed())
}
