// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// RulesFile is the PrometheusRule, relative to the repository's root.
const RulesFile = "config/alerts/prometheus_rule.yaml"

// Rule is an alert or a record.
type Rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	KeepFiring  string            `json:"keep_firing_for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Group is a group of rules.
type Group struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Rules is a PrometheusRule as far as Prometheus knows it.
type Rules struct {
	Groups []Group `json:"groups"`
}

// ReadRules returns the rules in the file of a PrometheusRule.
func ReadRules(path string) (*Rules, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	object := struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       Rules          `json:"spec"`
	}{}
	if err := yaml.UnmarshalStrict(data, &object); err != nil {
		return nil, fmt.Errorf("parse the alerts in %s: %w", path, err)
	}
	return &object.Spec, nil
}

// Alerts returns the rules that are alerts.
func (r *Rules) Alerts() []Rule {
	var alerts []Rule
	for _, group := range r.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				alerts = append(alerts, rule)
			}
		}
	}
	return alerts
}

// Replay is a run of Prometheus over series, and what is asked of it.
type Replay struct {
	Name string
	// Series has values, one a minute, in promtool's notation ("0 1 1", "0+60x90"), by a metric with its own labels. Those of managers may
	// leave out whose they are; see scrape.
	Series map[string]string
	// Checks are what is asked.
	Checks []Check
}

// Check is a question about a time.
type Check struct {
	At string
	// Firing are the alerts that fire then; Ever are those that have fired until then. Nil asks nothing.
	Firing, Ever []string
	// Summaries of the alerts of a name that fire then, in full.
	Alert     string
	Summaries []Summary
}

// Summary is an alert that fires.
type Summary struct {
	// Labels are those that the rule does not have.
	Labels  map[string]string `json:"labels"`
	Summary string            `json:"summary"`
	// Of is the manager whose series the alert is about; the rule's when empty. Nobody stands for the lack of series.
	Of string `json:"of"`
}

// Nobody has the series that an alert misses.
const Nobody = "nobody"

// The file of promtool's unit tests.
type (
	testFile struct {
		RuleFiles          []string   `json:"rule_files"`
		EvaluationInterval string     `json:"evaluation_interval"`
		Tests              []testCase `json:"tests"`
	}
	testCase struct {
		Name        string      `json:"name"`
		Interval    string      `json:"interval"`
		InputSeries []input     `json:"input_series"`
		Expressions []exprTest  `json:"promql_expr_test,omitempty"`
		Alerts      []alertTest `json:"alert_rule_test,omitempty"`
	}
	input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	exprTest struct {
		Expr     string   `json:"expr"`
		EvalTime string   `json:"eval_time"`
		Samples  []sample `json:"exp_samples"`
	}
	sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	alertTest struct {
		EvalTime string     `json:"eval_time"`
		Name     string     `json:"alertname"`
		Alerts   []expected `json:"exp_alerts"`
	}
	expected struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
)

const (
	firing = `group by (alertname) (ALERTS{alertstate="firing"})`
	ever   = `group by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1d]))`
)

// Write writes the rules and promtool's test of them into a folder, and returns the path of the test.
func (r *Rules) Write(folder string, replays []Replay) (string, error) {
	test := testFile{RuleFiles: []string{"rules.yaml"}, EvaluationInterval: "1m"}
	for _, replay := range replays {
		written, err := r.testCase(replay)
		if err != nil {
			return "", fmt.Errorf("%s: %w", replay.Name, err)
		}
		test.Tests = append(test.Tests, written)
	}
	path := filepath.Join(folder, "tests.yaml")
	for file, content := range map[string]any{filepath.Join(folder, "rules.yaml"): r, path: test} {
		data, err := yaml.Marshal(content)
		if err != nil {
			return "", fmt.Errorf("write %s: %w", file, err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return "", fmt.Errorf("write what promtool reads: %w", err)
		}
	}
	return path, nil
}

func (r *Rules) testCase(replay Replay) (testCase, error) {
	scraped, err := scrape(replay.Series)
	test := testCase{Name: replay.Name, Interval: "1m", InputSeries: scraped}
	for _, check := range replay.Checks {
		if check.Firing != nil {
			test.Expressions = append(test.Expressions, exprTest{firing, check.At, named(check.Firing)})
		}
		if check.Ever != nil {
			test.Expressions = append(test.Expressions, exprTest{ever, check.At, named(check.Ever)})
		}
		if check.Alert != "" {
			test.Alerts = append(test.Alerts, alertTest{check.At, check.Alert, r.expected(check)})
		}
	}
	return test, err
}

func named(alerts []string) []sample {
	samples := []sample{}
	for _, name := range alerts {
		samples = append(samples, sample{fmt.Sprintf(`{alertname=%q}`, name), 1})
	}
	return samples
}

// expected completes summaries with the labels and annotations that the rule has as they are.
func (r *Rules) expected(check Check) []expected {
	var all []expected
	for _, summary := range check.Summaries {
		alerts := r.Alerts()
		rule := alerts[slices.IndexFunc(alerts, func(rule Rule) bool {
			manager := summary.Labels["manager"]
			return rule.Alert == check.Alert && (manager == "" || rule.Labels["manager"] == manager)
		})]
		alert := expected{Labels: maps.Clone(rule.Labels), Annotations: maps.Clone(rule.Annotations)}
		maps.Copy(alert.Labels, summary.Labels)
		if of := cmp.Or(summary.Of, rule.Labels["manager"]); of != Nobody {
			maps.Copy(alert.Labels, map[string]string{"namespace": namespaceOf(of), "job": jobOf(of)})
		}
		alert.Annotations["summary"] = strings.TrimSpace(summary.Summary)
		all = append(all, alert)
	}
	return all
}
