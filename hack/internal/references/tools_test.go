// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// ownVersions are the libraries of which a tool keeps the version of its release.
var ownVersions = map[string][]string{
	"kubernetes": {"github.com/antlr4-go/antlr/v4", "github.com/google/cel-go"},
	"capi":       nil,
	"helm":       {"github.com/Masterminds/semver/v3", "go.opentelemetry.io/proto/otlp"},
}

// TestToolsShareLibraries: what the managers are compiled from is not compiled once more, in another version, for the largest tools.
func TestToolsShareLibraries(t *testing.T) {
	ours := versions(t, filepath.Join(root, "go.mod"))
	for tool, own := range ownVersions {
		t.Run(tool, func(t *testing.T) {
			var differ []string
			for module, version := range versions(t, filepath.Join(root, "hack/tools", tool, "go.mod")) {
				if wanted := ours[module]; wanted != "" && wanted != version {
					differ = append(differ, module)
				}
			}
			NewWithT(t).Expect(differ).To(ConsistOf(own), "change the version in hack/tools/%s/go.mod, or ownVersions and %s", tool, development)
		})
	}
}

// development is the page that names ownVersions.
const development = "docs/development.md"

// TestOwnVersionsAreTold looks for every library of ownVersions in the page about development.
func TestOwnVersionsAreTold(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(root, development))
	g.Expect(err).NotTo(HaveOccurred())
	for _, own := range ownVersions {
		for _, module := range own {
			g.Expect(string(text)).To(ContainSubstring("`" + module + "`"))
		}
	}
}

// versions returns the version of every module that a go.mod requires.
func versions(t *testing.T, path string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, match := range requirements(t, path) {
		found[match[1]] = match[2]
	}
	return found
}
