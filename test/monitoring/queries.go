// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// Query is what a query is about, as hack/tools/prometheus tells it.
type Query struct {
	Error     string     `json:"error"`
	Selectors []Selector `json:"selectors"`
	Labels    []string   `json:"labels"`
}

// Selector is what a query selects.
type Selector struct {
	Name     string    `json:"name"`
	Matchers []Matcher `json:"matchers"`
}

// Matcher is a condition on a label.
type Matcher struct {
	Label string `json:"label"`
	Op    string `json:"op"`
	Value string `json:"value"`
}

// ParseQueries has Prometheus' parser read queries.
func ParseQueries(ctx context.Context, progress io.Writer, expressions []string) ([]Query, error) {
	tools, err := localcontrolplane.NewTools(progress)
	if err != nil {
		return nil, err
	}
	program, err := tools.Path(ctx, "promql")
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(expressions)
	if err != nil {
		return nil, fmt.Errorf("write the queries: %w", err)
	}
	command := exec.CommandContext(ctx, program)
	command.Stdin = bytes.NewReader(input)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("parse the queries: %w", err)
	}
	var queries []Query
	if err := json.Unmarshal(output, &queries); err != nil {
		return nil, fmt.Errorf("read what the queries are about: %w", err)
	}
	return queries, nil
}

// Check returns what a query names that no series has: metrics, labels, and values of labels that have few.
func (q Query) Check(known []Series) error {
	if q.Error != "" {
		return errors.New(q.Error)
	}
	var problems []error
	labels := append([]string{"le"}, Targets()...)
	for _, selector := range q.Selectors {
		series, ok := Find(known, selector.Name)
		if !ok {
			problems = append(problems, fmt.Errorf("there is no series %q", selector.Name))
			continue
		}
		labels = slices.AppendSeq(labels, maps.Keys(series.Labels))
		for _, matcher := range selector.Matchers {
			if err := matcher.check(series); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", selector.Name, err))
			}
		}
	}
	for _, label := range q.Labels {
		if !slices.Contains(labels, label) {
			problems = append(problems, fmt.Errorf("none of the series has label %s", label))
		}
	}
	return errors.Join(problems...)
}

func (m Matcher) check(series Series) error {
	values, ok := series.Labels[m.Label]
	switch {
	case !ok && slices.Contains(Targets(), m.Label):
		return nil
	case !ok:
		return fmt.Errorf("it has no label %s", m.Label)
	case values == nil:
		return nil
	}
	alternatives := []string{m.Value}
	if strings.HasSuffix(m.Op, "~") {
		alternatives = strings.Split(m.Value, "|")
	}
	for _, alternative := range alternatives {
		pattern := regexp.QuoteMeta(alternative)
		if strings.HasSuffix(m.Op, "~") {
			pattern = alternative
		}
		whole, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			return fmt.Errorf("label %s: %w", m.Label, err)
		}
		if !slices.ContainsFunc(values, whole.MatchString) {
			return fmt.Errorf("label %s is never %s", m.Label, alternative)
		}
	}
	return nil
}
