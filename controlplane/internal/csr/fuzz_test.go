// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n",
		"-----BEGIN CERTIFICATE REQUEST-----", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		untrustedtest.Bounded(t, func() { _, _ = parse(data) })
	})
}

// A key of a megabit would keep the manager busy for minutes.
func TestHugeRequests(t *testing.T) {
	_, err := parse(make([]byte, 1<<20))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no more than 16384 are read")))
}
