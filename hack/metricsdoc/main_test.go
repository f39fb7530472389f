// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDocumentIsUpToDate(t *testing.T) {
	NewWithT(t).Expect(reference.Check("../..")).To(Succeed())
}
