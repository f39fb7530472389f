// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../.."

// TestDashboardsAreUpToDate: the files are what the description says, and there are no others.
func TestDashboardsAreUpToDate(t *testing.T) {
	g := NewWithT(t)
	documents, err := documents(root)
	g.Expect(err).NotTo(HaveOccurred())
	var written []string
	for _, document := range documents {
		written = append(written, filepath.Join(root, document.Path))
		g.Expect(document.Check(root)).To(Succeed())
	}
	found, err := filepath.Glob(filepath.Join(root, folder, "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ConsistOf(written))
}

// TestLayout: panels stand side by side until a line is full, and no two of them on the same place.
func TestLayout(t *testing.T) {
	g := NewWithT(t)
	q := []query{{Expr: "up"}}
	panels, err := dashboard{Rows: []row{
		{Title: "a", Panels: []panel{
			{Kind: "stat", Queries: q}, {Kind: "timeseries", Width: 12, Queries: q}, {Kind: "bargauge", Width: 9, Height: 3, Queries: q},
		}},
		{Title: "b", Panels: []panel{{Kind: "timeseries", Queries: q}}},
	}}.panels()
	g.Expect(err).NotTo(HaveOccurred())
	var places []any
	for i, panel := range panels {
		g.Expect(panel["id"]).To(Equal(i + 1))
		places = append(places, panel["gridPos"])
	}
	g.Expect(places).To(Equal([]any{
		object{"x": 0, "y": 0, "w": 24, "h": 1},
		object{"x": 0, "y": 1, "w": 4, "h": 4}, object{"x": 4, "y": 1, "w": 12, "h": 8}, object{"x": 0, "y": 9, "w": 9, "h": 3},
		object{"x": 0, "y": 12, "w": 24, "h": 1},
		object{"x": 0, "y": 13, "w": 8, "h": 8},
	}))
}

// TestBadPanels: what Grafana would show as an empty panel is refused.
func TestBadPanels(t *testing.T) {
	for name, test := range map[string]struct {
		panel panel
		want  string
	}{
		"no query":          {panel{Kind: "stat"}, "0 queries"},
		"unknown kind":      {panel{Kind: "pie", Queries: []query{{Expr: "up"}}}, `kind "pie"`},
		"table, no columns": {panel{Kind: "table", Queries: []query{{Expr: "up"}}}, "needs columns"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.panel.grafana()
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
