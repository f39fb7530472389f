// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"sigs.k8s.io/cluster-api/test/framework/clusterctl"
)

const (
	guide = "../../docs/guides/capi-e2e.md"
	// suiteSets is the variable of every configuration that the suite knows itself.
	suiteSets = "OUT"
)

// assignment is NAME=value in a line of a shell.
var assignment = regexp.MustCompile(`([A-Z][A-Z0-9_]*)=([^ #\n]+)`)

// TestConfigurations loads both configurations as the suite does. No cluster is needed, so that the one that nobody has run for months is
// tried whenever the other is used.
func TestConfigurations(t *testing.T) {
	const local, dev = "config/local.yaml", "config/metal3-dev-env.yaml"
	loaded := map[string]*clusterctl.E2EConfig{}
	for _, tt := range []struct {
		name, file string
		values     map[string]string
	}{
		{"on this machine", local, localValues(releases(t), "cluster-api:v1.2.3", "metal3:v1.2.4")},
		{"on metal3-dev-env, with the variables of its guide", dev, exported(t)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			RegisterTestingT(t)
			unset(t, tt.values)
			Expect(variablesOf(tt.file)).To(ConsistOf(slices.Collect(maps.Keys(tt.values))), "the variables of %s", tt.file)
			values := maps.Clone(tt.values)
			values[suiteSets] = t.TempDir()
			writeTemplates(values[suiteSets])
			loaded[tt.file] = loadConfig(t.Context(), tt.file, values)
			expectMetadata(loaded[tt.file])
			for name := range tt.values {
				without := maps.Clone(values)
				delete(without, name)
				failure := InterceptGomegaFailure(func() { loadConfig(t.Context(), tt.file, without) })
				Expect(failure).To(MatchError(ContainSubstring("variables that are not set: " + name + "\n")))
			}
		})
	}
	t.Run("specs find the same in both", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(slices.Collect(maps.Keys(loaded))).To(ConsistOf(local, dev))
		g.Expect(slices.Sorted(maps.Keys(loaded[dev].Variables))).To(Equal(slices.Sorted(maps.Keys(loaded[local].Variables))))
		delete(loaded[dev].Intervals, "management/wait-controllers") // Those of this machine run when the specs begin.
		g.Expect(slices.Sorted(maps.Keys(loaded[dev].Intervals))).To(Equal(slices.Sorted(maps.Keys(loaded[local].Intervals))))
	})
}

// unset hides variables of the shell, which would stand in for one that is missing.
func unset(t *testing.T, values map[string]string) {
	t.Helper()
	for name := range values {
		t.Setenv(name, "") // Restores it afterwards.
		Expect(os.Unsetenv(name)).To(Succeed())
	}
}

// releases makes what the configuration of this machine takes from the folder of the releases. That its files exist is checked.
func releases(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, release := range []string{"cluster-api/v1.2.3", "infrastructure-metal3/v1.2.4"} {
		NewWithT(t).Expect(os.MkdirAll(filepath.Join(folder, release), 0o750)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(filepath.Join(folder, release, "metadata.yaml"), nil, 0o600)).To(Succeed())
	}
	return folder
}

// exported are the variables that the guide has a user set for metal3-dev-env. A temporary folder, with the files that they name, stands in
// for the user's home.
func exported(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(guide)
	g.Expect(err).NotTo(HaveOccurred())
	home, values := t.TempDir(), map[string]string{}
	for line := range strings.Lines(string(text)) {
		assignments, found := strings.CutPrefix(line, "export ")
		if !found {
			continue
		}
		for _, match := range assignment.FindAllStringSubmatch(assignments, -1) {
			name, value := match[1], strings.Replace(match[2], "$HOME", home, 1)
			if strings.HasPrefix(value, home) {
				g.Expect(os.WriteFile(value, nil, 0o600)).To(Succeed())
			}
			values[name] = value
		}
	}
	return values
}

// variablesOf are the variables that a configuration names, but for what the suite sets.
func variablesOf(file string) []string {
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	names := map[string]bool{}
	os.Expand(string(text), func(name string) string {
		names[name] = true
		return ""
	})
	delete(names, suiteSets)
	return slices.Collect(maps.Keys(names))
}

// expectMetadata expects that clusterctl finds the metadata of every provider.
func expectMetadata(config *clusterctl.E2EConfig) {
	for _, provider := range config.Providers {
		Expect(provider.Versions).To(HaveLen(1), provider.Name)
		Expect(provider.Versions[0].Files).To(ContainElement(HaveField("TargetName", "metadata.yaml")), provider.Name)
	}
}

// TestTemporaryFiles: what the framework leaves in the folder of temporary files is gone after the suite.
func TestTemporaryFiles(t *testing.T) {
	g := NewWithT(t)
	var left string
	t.Run("suite", func(t *testing.T) {
		collectTemporaryFiles(t)
		file, err := os.CreateTemp(os.TempDir(), "e2e-kubeconfig")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
		left = file.Name()
	})
	g.Expect(left).NotTo(BeAnExistingFile())
}
