// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The grid of a dashboard.
const (
	columns       = 24
	defaultHeight = 8
)

// object is a part of Grafana's JSON; encoding/json writes its keys in order.
type object = map[string]any

// datasource is chosen by whoever looks at the dashboard.
var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// widths are those of panels that do not have one, by kind.
var widths = map[string]int{"stat": 4, "bargauge": 8, "timeseries": 8, "table": 12}

// grafana is the dashboard as Grafana reads it.
func (d dashboard) grafana() (object, error) {
	variables := make([]object, 0, 1+len(d.Variables))
	variables = append(variables, object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"})
	for _, v := range d.Variables {
		variables = append(variables, object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": datasource, "refresh": 2, "sort": 1,
			"definition": v.Query, "query": object{"query": v.Query, "refId": v.Name},
		})
	}
	panels, err := d.panels()
	if err != nil {
		return nil, err
	}
	return object{
		"uid": d.UID, "title": d.Title, "description": d.Text, "tags": []string{"openshift-assisted"}, "schemaVersion": 39, "version": 1,
		"editable": false, "refresh": "1m", "time": object{"from": "now-6h", "to": "now"}, "timezone": "browser",
		"templating": object{"list": variables}, "panels": panels,
		"links": []object{{
			"type": "dashboards", "title": "OpenShift Assisted", "tags": []string{"openshift-assisted"}, "asDropdown": true, "includeVars": true,
		}},
	}, nil
}

// panels puts the panels of each row side by side, in lines of the grid.
func (d dashboard) panels() ([]object, error) {
	var panels []object
	y := 0
	add := func(panel object, x, width, height int) {
		panel["id"] = len(panels) + 1
		panel["gridPos"] = object{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, panel)
	}
	for _, r := range d.Rows {
		add(object{"type": "row", "title": r.Title, "collapsed": false, "panels": []object{}}, 0, columns, 1)
		y++
		x, tallest := 0, 0
		for _, p := range r.Panels {
			width, height := cmp.Or(p.Width, widths[p.Kind]), cmp.Or(p.Height, heightOf(p.Kind))
			if x+width > columns {
				x, y, tallest = 0, y+tallest, 0
			}
			whole, err := p.grafana()
			if err != nil {
				return nil, fmt.Errorf("panel %s: %w", p.Title, err)
			}
			add(whole, x, width, height)
			x, tallest = x+width, max(tallest, height)
		}
		y += tallest
	}
	return panels, nil
}

func heightOf(kind string) int {
	if kind == "stat" {
		return defaultHeight / 2
	}
	return defaultHeight
}

func (p panel) grafana() (object, error) {
	if len(p.Queries) == 0 || len(p.Queries) > 26 {
		return nil, fmt.Errorf("it has %d queries", len(p.Queries))
	}
	defaults := object{"unit": cmp.Or(p.Unit, "short")}
	if p.Warn != 0 {
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{
			{"color": "green", "value": nil}, {"color": "red", "value": p.Warn},
		}}
	}
	whole := object{
		"type": p.Kind, "title": p.Title, "description": p.Text, "datasource": datasource, "targets": p.targets(),
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
	}
	switch p.Kind {
	case "stat", "bargauge":
		whole["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "orientation": "horizontal", "displayMode": "basic"}
	case "timeseries":
		whole["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi"}}
	case "table":
		return whole, p.table(whole)
	default:
		return nil, fmt.Errorf("kind %q is not known", p.Kind)
	}
	return whole, nil
}

func (p panel) targets() []object {
	targets := make([]object, 0, len(p.Queries))
	for i, q := range p.Queries {
		target := object{
			"refId": string(rune('A' + i)), "datasource": datasource, "expr": strings.Join(strings.Fields(q.Expr), " "), "legendFormat": q.Legend,
			"range": p.Kind == "timeseries", "instant": p.Kind != "timeseries",
		}
		if p.Kind == "table" {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	return targets
}

// table shows the columns that have a title, in their order, and no others.
func (p panel) table(whole object) error {
	if len(p.Columns) == 0 {
		return fmt.Errorf("a table needs columns")
	}
	hidden := object{"Time": true}
	if p.Columns["Value"] == "" {
		hidden["Value"] = true
	}
	order := object{}
	for i, name := range tableOrder(p.Columns) {
		order[name] = i
	}
	whole["transformations"] = []object{{
		"id": "organize", "options": object{"excludeByName": hidden, "renameByName": p.Columns, "indexByName": order},
	}}
	if p.Link != nil {
		whole["fieldConfig"].(object)["overrides"] = []object{{
			"matcher": object{"id": "byName", "options": p.Link.Column},
			"properties": []object{{"id": "links", "value": []object{{
				"title": "Open the cluster",
				"url": "/d/" + p.Link.Dashboard +
					"?var-datasource=${datasource}&var-namespace=${__data.fields.Namespace}&var-cluster=${__data.fields.Cluster}",
			}}}},
		}}
	}
	return nil
}

// tableOrder puts what an object is before what it says, and numbers last.
func tableOrder(titles map[string]string) []string {
	rank := []string{"namespace", "cluster_name", "name", "pod", "type", "status", "reason"}
	return slices.SortedFunc(maps.Keys(titles), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(rank, a), place(rank, b)), cmp.Compare(a, b))
	})
}

func place(rank []string, name string) int {
	if name == "Value" {
		return len(rank) + 1
	}
	if i := slices.Index(rank, name); i >= 0 {
		return i
	}
	return len(rank)
}
