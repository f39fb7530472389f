// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

func FuzzParseIgnition(f *testing.F) {
	for _, seed := range []string{
		`{"ignition":{"version":"3.2.0"}}`,
		`{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,a"}}]}}`,
		`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + strings.TrimSuffix(strings.Repeat(`{"path":"/a","mode":7},`, 600), ",") + `]}}`,
		`{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a.service","contents":"[Unit"}]}}`, `{"ignition":{"version":"9"}}`, `[[[[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		untrustedtest.Bounded(t, func() { _, _ = ParseIgnition(text) })
	})
}

func FuzzTrustBundleProblem(f *testing.F) {
	const block = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
	for _, seed := range []string{block, strings.Repeat(block, 100), "-----BEGIN CERTIFICATE-----", strings.Repeat("-----BEGIN ", 1000),
		"none"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, bundle string) {
		untrustedtest.Bounded(t, func() { _ = TrustBundleProblem(bundle) })
	})
}

// A report has a line for each mistake in a config: a condition has room for some.
func TestIgnitionWithManyMistakes(t *testing.T) {
	g := NewWithT(t)
	many := strings.TrimSuffix(strings.Repeat(`{"path":"no-path-é"},`, 900), ",")
	var err error
	untrustedtest.Bounded(t, func() { _, err = ParseIgnition(`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + many + `]}}`) })
	g.Expect(err).To(MatchError(And(HavePrefix("is no valid ignition config"), HaveSuffix("and 1794 more"))))
	g.Expect(len(err.Error())).To(BeNumerically("<", 2<<10))
	_, err = ParseIgnition(`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + strings.Repeat("{},", 20_000) + `{}]}}`)
	g.Expect(err).To(MatchError(ContainSubstring("more than 2000 values")))
}
