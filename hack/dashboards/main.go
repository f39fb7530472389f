// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the dashboards that Grafana reads from their description, config/dashboards/dashboards.yaml. Run it in the
// repository's root.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/hack/internal/document"
)

const (
	folder      = "config/dashboards"
	description = "dashboards.yaml"
)

// dashboard is a description.
type dashboard struct {
	File      string     `json:"file"`
	UID       string     `json:"uid"`
	Title     string     `json:"title"`
	Text      string     `json:"text"`
	Variables []variable `json:"variables,omitempty"`
	Rows      []row      `json:"rows"`
}

// variable is what is chosen on top of a dashboard.
type variable struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Query string `json:"query"`
}

type row struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	Title string `json:"title"`
	// Kind is stat, bargauge, timeseries or table.
	Kind string `json:"kind"`
	// Unit is one of Grafana's; short when empty.
	Unit string `json:"unit,omitempty"`
	Text string `json:"text,omitempty"`
	// Width and Height are in units of the grid, of which 24 are a line.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Warn is the value from which a stat is red.
	Warn float64 `json:"warn,omitempty"`
	// Columns are the titles of a table's columns by the labels that it shows, and by "Value".
	Columns map[string]string `json:"columns,omitempty"`
	// Link leads from a column to a dashboard of a cluster.
	Link    *link   `json:"link,omitempty"`
	Queries []query `json:"queries"`
}

type link struct {
	Column    string `json:"column"`
	Dashboard string `json:"dashboard"`
}

type query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legend,omitempty"`
}

func main() {
	documents, err := documents(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
	for _, file := range documents {
		file.Main()
	}
}

// documents returns the files of all descriptions below the repository's root.
func documents(root string) ([]document.Document, error) {
	all, err := read(root)
	if err != nil {
		return nil, err
	}
	documents := make([]document.Document, 0, len(all))
	for _, one := range all {
		documents = append(documents, document.Document{Path: filepath.Join(folder, one.File), Render: func(string) ([]byte, error) {
			return render(one)
		}})
	}
	return documents, nil
}

func read(root string) ([]dashboard, error) {
	data, err := os.ReadFile(filepath.Join(root, folder, description))
	if err != nil {
		return nil, fmt.Errorf("read the description of the dashboards: %w", err)
	}
	var all []dashboard
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		return nil, fmt.Errorf("parse the description of the dashboards: %w", err)
	}
	return all, nil
}

func render(one dashboard) ([]byte, error) {
	whole, err := one.grafana()
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", one.Title, err)
	}
	out := &bytes.Buffer{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(whole); err != nil {
		return nil, fmt.Errorf("write dashboard %s: %w", one.Title, err)
	}
	return out.Bytes(), nil
}
