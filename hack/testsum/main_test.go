// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestGroups(t *testing.T) {
	g := NewWithT(t)
	g.Expect(groups([]string{"a", "b"})).To(Equal([][]string{{"a", "b"}}))
	g.Expect(groups([]string{"a", "--", "b", "c"})).To(Equal([][]string{{"a"}, {"b", "c"}}))
}
