// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// faultCase is what the managers serve during a fault, and which alerts fire.
type faultCase struct {
	Fault  string            `json:"fault"`
	Series map[string]string `json:"series"`
	Alerts []string          `json:"alerts"`
}

// recordings returns what the managers serve during each fault of the sandbox. It is the only place that knows where that comes from: today
// from a file that was written by hand.
func recordings(t *testing.T) []faultCase {
	t.Helper()
	var cases []faultCase
	readYAML(t, "faults.yaml", &cases)
	return cases
}

// TestFaults: of each fault that the sandbox plays the right alerts fire within six hours, and no others.
func TestFaults(t *testing.T) {
	g := NewWithT(t)
	var played, replayed []string
	for _, fault := range sandbox.Faults() {
		played = append(played, fault.Name)
	}
	var replays []Replay
	for _, c := range recordings(t) {
		replayed = append(replayed, c.Fault)
		replays = append(replays, Replay{Name: c.Fault, Series: c.Series, Checks: []Check{{At: "360m", Ever: append([]string{}, c.Alerts...)}}})
	}
	g.Expect(replayed).To(ConsistOf(played))
	promtool(t, readRules(t), replays)
}
