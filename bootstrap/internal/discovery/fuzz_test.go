// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"ignition":{"version":"3.2.0"}}`, `{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"data:,"}]}}}`, "<html>",
		strings.Repeat("[", 1<<10),
		`{"ignition":{"version":"3.1.0"},"storage":{"files":[` + strings.Repeat(`{"path":"/a"},`, 950) + `{"path":"/b"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		untrustedtest.Bounded(t, func() { _ = check(data) })
	})
}

// ignition's own parser takes a hundred times the memory of a document that is made of small values, and a stack as deep as it is nested.
func TestHugeDiscoveryIgnitions(t *testing.T) {
	for name, test := range map[string]struct{ data, want string }{
		"many small values": {data: `{"ignition":{"version":"3.2.0"},"storage":{"files":[` + strings.Repeat("{},", 300_000) + `{}]}}`,
			want: "more than 2000 values"},
		"deep lists":     {data: strings.Repeat("[", MaxSize), want: "nested more than 64 deep"},
		"too many bytes": {data: strings.Repeat(" ", MaxSize+1), want: "fit into a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			untrustedtest.Bounded(t, func() { NewWithT(t).Expect(check([]byte(test.data))).To(MatchError(ContainSubstring(test.want))) })
		})
	}
}
