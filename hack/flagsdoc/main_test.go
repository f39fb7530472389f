// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDocumentIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	want, err := render()
	g.Expect(err).NotTo(HaveOccurred())
	document, err := os.ReadFile(filepath.Join("..", "..", output))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(document)).To(Equal(string(want)), "run make generate")
}
