// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestStampedVersion builds both managers with the linker's flags of the Makefile, and compares those of the images with them: the linker
// does not complain about a variable that does not exist, and the managers would call their version unknown.
func TestStampedVersion(t *testing.T) {
	root, err := localcontrolplane.RepositoryRoot()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	flags := linkerFlags(t, root, "Makefile", `(?m)^link_flags = (.+=)\$\(version\)$`, "$(revision)")
	for _, p := range providers {
		t.Run(p.folder, func(t *testing.T) {
			g := NewWithT(t)
			target := ` -o bin/` + p.folder + ` ./` + p.folder + "\n"
			g.Expect(string(read(t, root, "Makefile"))).To(ContainSubstring(`-ldflags "$(link_flags)"` + target))
			image := `-ldflags "(.+=)\$\{VERSION\}" -o /manager \./` + p.folder + "\n"
			g.Expect(linkerFlags(t, root, "Dockerfile."+p.folder, image, "${REVISION}")).To(Equal(flags))

			program := filepath.Join(t.TempDir(), p.folder)
			build := exec.CommandContext(
				t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags+version, "-o", program, "./"+p.folder,
			)
			// What other tests build has the same settings, so only linking is left to do.
			build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
			output, err := build.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(output))
			said, err := exec.CommandContext(t.Context(), program, "--version").Output()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(said)).To(HavePrefix(p.prefix + "-manager " + version + " (revision " + revision + ", go"))
		})
	}
}

// revision is a commit that the managers are told to be of.
const revision = "0123456789abcdef"

// linkerFlags returns the first group of a pattern in a file, the flags up to the version, with a revision in the place of the variable.
func linkerFlags(t *testing.T, root, name, pattern, variable string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindSubmatch(read(t, root, name))
	NewWithT(t).Expect(match).To(HaveLen(2), "%s has no linker flags with a version at their end", name)
	NewWithT(t).Expect(string(match[1])).To(ContainSubstring(variable), "%s does not tell the revision", name)
	versions := "github.com/capi-openshift/agent-providers/internal/version"
	return strings.NewReplacer("$(version_package)", versions, variable, revision).Replace(string(match[1]))
}
