// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/monitoring/customresourcestate"
)

// known are all series that a query may name.
func known(t *testing.T) []Series {
	t.Helper()
	config, err := customresourcestate.Read(filepath.Join(root, "config/metrics/custom_resource_state.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	all := slices.Concat(Own(), Libraries(), OfObjects(config))
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				all = append(all, Series{Name: rule.Record, Type: Gauge, Labels: labels{"result": nil, "name": nil}})
			}
		}
	}
	return all
}

// grafana is a dashboard, as far as the tests look at it.
type grafana struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int    `json:"id"`
		Title   string `json:"title"`
		Targets []struct {
			RefID        string `json:"refId"`
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

func dashboards(t *testing.T) map[string]grafana {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(root, "config/dashboards/*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(3))
	all := map[string]grafana{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var dashboard grafana
		g.Expect(json.Unmarshal(data, &dashboard)).To(Succeed(), file)
		all[filepath.Base(file)] = dashboard
	}
	return all
}

// TestDashboards: Grafana takes the dashboards: identities are there once.
func TestDashboards(t *testing.T) {
	g := NewWithT(t)
	uids := map[string]bool{}
	for file, dashboard := range dashboards(t) {
		g.Expect(dashboard.UID).To(MatchRegexp(`^[a-z-]{1,40}$`), file)
		g.Expect(uids).NotTo(HaveKey(dashboard.UID))
		uids[dashboard.UID] = true
		ids, titles := map[int]bool{}, map[string]bool{}
		for _, panel := range dashboard.Panels {
			g.Expect(ids).NotTo(HaveKey(panel.ID), "%s: %s", file, panel.Title)
			g.Expect(titles).NotTo(HaveKey(panel.Title), file)
			ids[panel.ID], titles[panel.Title] = true, true
		}
	}
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// grafanaQueries are the queries of a dashboard, with values in the places of Grafana's variables, by what asks them; and the labels that
// it shows.
func grafanaQueries(t *testing.T, dashboard grafana) map[string]Query {
	t.Helper()
	g := NewWithT(t)
	var names, expressions []string
	shown := map[string][]string{}
	values := []string{"$__rate_interval", "5m", "$datasource", "prometheus"}
	for _, variable := range dashboard.Templating.List {
		values = append(values, "$"+variable.Name, "a")
	}
	filled := strings.NewReplacer(values...)
	add := func(name, expression string) {
		names, expressions = append(names, name), append(expressions, filled.Replace(expression))
		g.Expect(expressions[len(expressions)-1]).NotTo(ContainSubstring("$"), "a variable of Grafana that nobody knows")
	}
	for _, variable := range dashboard.Templating.List {
		if variable.Definition == "" {
			continue
		}
		match := labelValues.FindStringSubmatch(variable.Definition)
		g.Expect(match).NotTo(BeNil(), variable.Definition)
		add("variable "+variable.Name, match[1])
		shown["variable "+variable.Name] = match[2:]
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			name := panel.Title + " " + target.RefID
			add(name, target.Expr)
			for _, match := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				shown[name] = append(shown[name], match[1])
			}
		}
	}
	parsed, err := ParseQueries(t.Context(), os.Stderr, expressions)
	g.Expect(err).NotTo(HaveOccurred())
	queries := map[string]Query{}
	for i, query := range parsed {
		query.Labels = append(query.Labels, shown[names[i]]...)
		queries[names[i]] = query
	}
	g.Expect(queries).To(HaveLen(len(names)))
	return queries
}

// TestQueriesOfDashboards: every query can be parsed, and names no metric, label or value that does not exist; and every metric of ours is
// on a dashboard.
func TestQueriesOfDashboards(t *testing.T) {
	g := NewWithT(t)
	all, used := known(t), map[string]bool{}
	for file, dashboard := range dashboards(t) {
		for name, query := range grafanaQueries(t, dashboard) {
			t.Run(file+" "+name, func(t *testing.T) {
				NewWithT(t).Expect(query.Check(all)).To(Succeed())
			})
			for _, selector := range query.Selectors {
				series, _ := Find(all, selector.Name)
				used[series.Name] = true
			}
		}
	}
	for _, series := range Own() {
		g.Expect(used).To(HaveKey(series.Name), "no dashboard shows it")
	}
}

// TestQueriesOfAlerts: the same of alerts and records.
func TestQueriesOfAlerts(t *testing.T) {
	g := NewWithT(t)
	var names, expressions []string
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			names, expressions = append(names, rule.Alert+rule.Record), append(expressions, rule.Expr)
		}
	}
	queries, err := ParseQueries(t.Context(), os.Stderr, expressions)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(queries).To(HaveLen(len(names)))
	for i, query := range queries {
		t.Run(names[i], func(t *testing.T) {
			NewWithT(t).Expect(query.Check(known(t))).To(Succeed())
		})
	}
}

// TestWrongQueries: what the tests above look for is found.
func TestWrongQueries(t *testing.T) {
	g := NewWithT(t)
	wrong := map[string]string{
		`max(openshift_assisted_hosts`:                                                "unclosed left parenthesis",
		`max(openshift_assisted_host)`:                                                `no series "openshift_assisted_host"`,
		`openshift_assisted_install_seconds`:                                          `no series "openshift_assisted_install_seconds"`,
		`max by (stat) (openshift_assisted_hosts)`:                                    "label stat",
		`openshift_assisted_hosts{phase="ready"}`:                                     "no label phase",
		`openshift_assisted_hosts{state="lost"}`:                                      "never lost",
		`openshift_assisted_hosts{state=~"ready|lost"}`:                               "never lost",
		`openshift_assisted_hosts * on (topology) group_left () go_goroutines`:        "label topology",
		`openshift_assisted_openshiftassistedconfig_status_condition{status="Maybe"}`: "never Maybe",
	}
	var expressions []string
	for expression := range wrong {
		expressions = append(expressions, expression)
	}
	queries, err := ParseQueries(t.Context(), os.Stderr, expressions)
	g.Expect(err).NotTo(HaveOccurred())
	for i, query := range queries {
		g.Expect(query.Check(known(t))).To(MatchError(ContainSubstring(wrong[expressions[i]])), expressions[i])
	}
}
