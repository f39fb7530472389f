// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	constraint = regexp.MustCompile(`(?m)^//go:build (\w+)$`)
	linted     = regexp.MustCompile(`(?m)^  build-tags: \[([^\]]+)\]$`)
)

// TestTagsAreLinted: golangci-lint sees the files of every build tag that this repository has made up.
func TestTagsAreLinted(t *testing.T) {
	g := NewWithT(t)
	config, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	g.Expect(err).NotTo(HaveOccurred())
	match := linted.FindStringSubmatch(string(config))
	g.Expect(match).NotTo(BeNil(), ".golangci.yml has no build tags")
	var tags []string
	_, err = eachFile(func(path, text string) {
		// The race detector's is the compiler's own.
		if tag := constraint.FindStringSubmatch(text); tag != nil && filepath.Ext(path) == ".go" && tag[1] != "race" {
			tags = append(tags, tag[1])
		}
	})
	g.Expect(err).NotTo(HaveOccurred())
	slices.Sort(tags)
	g.Expect(strings.Split(match[1], ", ")).To(Equal(slices.Compact(tags)))
}
