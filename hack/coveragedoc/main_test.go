// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/coverage"
)

func TestDocumentIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	root := filepath.Join("..", "..")
	want, err := render(root)
	g.Expect(err).NotTo(HaveOccurred())
	document, err := os.ReadFile(filepath.Join(root, output))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(document)).To(Equal(string(want)), "run make generate")
}

func TestRow(t *testing.T) {
	g := NewWithT(t)
	g.Expect(row("spec.a", coverage.Entry{Field: "Kind.spec.b", Note: "c | d"})).To(Equal("| `spec.a` | `Kind.spec.b` | c \\| d |"))
	g.Expect(row("spec.a", coverage.Entry{Declined: "Why.", Unpinned: true})).To(Equal("| `spec.a` * | nobody | Why. |"))
	g.Expect(row("spec.a", coverage.Entry{Provider: "How."})).To(Equal("| `spec.a` | the providers | How. |"))
}
