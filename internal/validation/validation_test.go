// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHostnameProblems(t *testing.T) {
	for name, problem := range map[string]string{
		"rack-1.host-0":                   "",
		"localhost-0":                     "",
		"localhost":                       "localhost",
		"localhost.localdomain":           "localhost",
		"Host_0":                          "lower case",
		strings.Repeat("a", 63):           "",
		strings.Repeat("a", 63) + ".rack": "63 characters",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if problem == "" {
				g.Expect(HostnameProblems(name)).To(BeEmpty())
				return
			}
			g.Expect(HostnameProblems(name)).To(ContainElement(ContainSubstring(problem)))
		})
	}
}
