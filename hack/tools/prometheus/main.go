// SPDX-License-Identifier: Apache-2.0

// Command promql tells what queries are about, with Prometheus' own parser: it reads a JSON list of queries and writes, for each, the
// series that it selects, with the labels that it selects them by, and all labels that it names elsewhere.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// selector is what a query selects.
type selector struct {
	Name     string    `json:"name"`
	Matchers []matcher `json:"matchers,omitempty"`
}

// matcher is a condition on a label.
type matcher struct {
	Label string `json:"label"`
	Op    string `json:"op"`
	Value string `json:"value"`
}

// query is what is told about a query.
type query struct {
	Error     string     `json:"error,omitempty"`
	Selectors []selector `json:"selectors,omitempty"`
	// Labels are those of by, without, on, ignoring, group_left and group_right.
	Labels []string `json:"labels,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "promql:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var expressions []string
	if err := json.NewDecoder(in).Decode(&expressions); err != nil {
		return fmt.Errorf("read the queries: %w", err)
	}
	queries := make([]query, len(expressions))
	for i, expression := range expressions {
		queries[i] = describe(expression)
	}
	if err := json.NewEncoder(out).Encode(queries); err != nil {
		return fmt.Errorf("write what the queries are about: %w", err)
	}
	return nil
}

func describe(expression string) query {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return query{Error: err.Error()}
	}
	var found query
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			found.Selectors = append(found.Selectors, describeSelector(n))
		case *parser.AggregateExpr:
			found.Labels = append(found.Labels, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				found.Labels = append(found.Labels, n.VectorMatching.MatchingLabels...)
				found.Labels = append(found.Labels, n.VectorMatching.Include...)
			}
		}
		return nil
	})
	return found
}

func describeSelector(node *parser.VectorSelector) selector {
	found := selector{Name: node.Name}
	for _, m := range node.LabelMatchers {
		if m.Name == labels.MetricName {
			found.Name = m.Value
			continue
		}
		found.Matchers = append(found.Matchers, matcher{Label: m.Name, Op: m.Type.String(), Value: m.Value})
	}
	return found
}
