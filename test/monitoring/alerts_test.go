// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

const root = "../.."

// alertCase is an entry of testdata/alerts.yaml.
type alertCase struct {
	Alert   string            `json:"alert"`
	Series  map[string]string `json:"series"`
	Quiet   string            `json:"quiet"`
	Fires   string            `json:"fires"`
	Texts   []Summary         `json:"texts"`
	Instead map[string]struct {
		Series map[string]string `json:"series"`
		Others []string          `json:"others"`
	} `json:"instead"`
}

// replays are the runs that show when an alert fires, and when it does not.
func (c alertCase) replays(number int) []Replay {
	name := fmt.Sprintf("%d %s", number, c.Alert)
	own := Replay{Name: name, Series: c.Series, Checks: []Check{
		{At: c.Quiet, Ever: []string{}},
		{At: c.Fires, Firing: []string{c.Alert}},
		{At: c.Fires, Alert: c.Alert, Summaries: c.Texts},
	}}
	replays := []Replay{own}
	for _, cause := range slices.Sorted(maps.Keys(c.Instead)) {
		instead := c.Instead[cause]
		replays = append(replays, Replay{
			Name: name + " instead: " + cause, Series: instead.Series,
			Checks: []Check{{At: "300m", Ever: append([]string{}, instead.Others...)}},
		})
	}
	return replays
}

// TestAlerts: each alert fires after its time and not before, with the text that somebody reads, and not for a cause that is next to its
// own.
func TestAlerts(t *testing.T) {
	g := NewWithT(t)
	var cases []alertCase
	readYAML(t, "alerts.yaml", &cases)
	rules := readRules(t)
	names, fired, instead := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var replays []Replay
	for i, c := range cases {
		fired[c.Alert] = true
		if len(c.Instead) > 0 {
			instead[c.Alert] = true
		}
		g.Expect(c.Texts).NotTo(BeEmpty(), c.Alert)
		replays = append(replays, c.replays(i)...)
	}
	for _, alert := range rules.Alerts() {
		names[alert.Alert] = true
	}
	g.Expect(fired).To(Equal(names), "alerts with a case, and alerts")
	g.Expect(instead).To(Equal(names), "alerts with a cause that they do not fire for, and alerts")
	promtool(t, rules, replays)
}

// TestHealthy: no alert fires on a hub on which nothing is wrong, and all do where a manager is not there: so the series of the healthy
// hub are read.
func TestHealthy(t *testing.T) {
	rules := readRules(t)
	promtool(t, rules, []Replay{
		{Name: "healthy", Checks: []Check{{At: "1000m", Ever: []string{}}}},
		{Name: "no managers", Series: map[string]string{
			`leader_election_master_status{name="openshift-assisted-bootstrap"}`:     "_x300",
			`leader_election_master_status{name="openshift-assisted-control-plane"}`: "_x300",
		}, Checks: []Check{{At: "300m", Firing: []string{"ManagerDown"}}}},
	})
}

// promtool has Prometheus' own tool replay series against the rules.
func promtool(t *testing.T, rules *Rules, replays []Replay) {
	t.Helper()
	g := NewWithT(t)
	tools, err := localcontrolplane.NewTools(os.Stderr)
	g.Expect(err).NotTo(HaveOccurred())
	program, err := tools.Path(t.Context(), "promtool")
	g.Expect(err).NotTo(HaveOccurred())
	tests, err := rules.Write(t.TempDir(), replays)
	g.Expect(err).NotTo(HaveOccurred())
	for _, args := range [][]string{{"check", "rules", filepath.Join(filepath.Dir(tests), "rules.yaml")}, {"test", "rules", tests}} {
		output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s", output)
	}
}

func readRules(t *testing.T) *Rules {
	t.Helper()
	rules, err := ReadRules(filepath.Join(root, RulesFile))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return rules
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join("testdata", name))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(data, into)).To(Succeed())
}
