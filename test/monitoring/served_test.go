// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
)

// TestStories: what queries are checked against is compared in every story with what was scraped, and what is said to be in one story
// only is a metric of ours.
func TestStories(t *testing.T) {
	g := NewWithT(t)
	for story, constant := range map[string]string{
		StoryMachines: "StoryMachines", StoryTopology: "StoryTopology", StoryFaults: "StoryFaults",
	} {
		files, err := filepath.Glob(filepath.Join(root, story, "*_test.go"))
		g.Expect(err).NotTo(HaveOccurred())
		checked := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			checked = checked || strings.Contains(string(text), "monitoring.CheckServed(monitoring."+constant)
		}
		g.Expect(checked).To(BeTrue(), "%s compares what it scrapes", story)
	}
	for name := range onlyIn {
		_, ok := Find(Own(), name+"_count")
		if !ok {
			_, ok = Find(Own(), name)
		}
		g.Expect(ok).To(BeTrue(), name)
	}
}

// TestCheckServed: what differs is found.
func TestCheckServed(t *testing.T) {
	series := Series{"hosts", Gauge, Bootstrap, labels{"state": {"ready"}}}
	for text, problem := range map[string]string{
		`hosts{state="ready"} 1`:        "",
		`hosts{state="lost"} 1`:         `may be "lost"`,
		`hosts{phase="ready"} 1`:        "has the labels [phase]",
		`hosts{state="ready",of="a"} 1`: "has the labels [of state]",
		`hosts_total{state="ready"} 1`:  "was not scraped in " + StoryFaults,
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			metrics, err := scraped.Parse([]byte(text + "\n"))
			g.Expect(err).NotTo(HaveOccurred())
			all, err := metrics.Series()
			g.Expect(err).NotTo(HaveOccurred())
			err = series.checkServed(all, StoryFaults)
			if problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(problem)))
		})
	}
	g := NewWithT(t)
	upgrades, _ := Find(Own(), "openshift_assisted_upgrades_total")
	g.Expect(upgrades.checkServed(nil, StoryFaults)).To(Succeed())
	g.Expect(upgrades.checkServed(nil, StoryTopology)).NotTo(Succeed())
}
