// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/capi-openshift/agent-providers/internal/manager"
)

// Answers is how soon a controller has answered events: of how many of them, and after how many seconds at most.
type Answers struct {
	// Manager and Controller are who answers.
	Manager    string `json:"manager"`
	Controller string `json:"controller"`
	Count      int    `json:"count"`
	// Own is our own time, from an event to the end of the pass without what Cluster API's limit defers, and Whole is with it.
	Own   Bounds `json:"own"`
	Whole Bounds `json:"whole"`
}

// Bounds are the upper bounds of the buckets of a histogram in which a share of all observations ends, in seconds. Those that end in none
// have the bound 0, which stands for more than any other.
type Bounds struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// histogram has how many observations were at most a bound, by the bound.
type histogram map[float64]float64

// readHistograms reads the text that Prometheus reads: a histogram for each controller, by the name of the metric.
func readHistograms(text io.Reader, names ...string) (map[string]map[string]histogram, error) {
	found := map[string]map[string]histogram{}
	for _, name := range names {
		found[name] = map[string]histogram{}
	}
	var errs []error
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, value, ok := cutLast(lines.Text(), " ")
		name, labels, labelled := strings.Cut(series, "_bucket{")
		if !ok || !labelled || found[name] == nil {
			continue
		}
		controller, bound := labelOf(labels, "controller"), labelOf(labels, "le")
		if found[name][controller] == nil {
			found[name][controller] = histogram{}
		}
		limit, limitErr := strconv.ParseFloat(bound, 64)
		count, countErr := strconv.ParseFloat(value, 64)
		found[name][controller][limit] = count
		errs = append(errs, limitErr, countErr)
	}
	return found, errors.Join(append(errs, lines.Err())...)
}

func cutLast(text, separator string) (before, after string, ok bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// labelOf is the value of a label; none of those that are asked for has a quotation mark in it.
func labelOf(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// count is how many observations there are.
func (h histogram) count() float64 { return h[math.Inf(1)] }

// bound is the upper bound of the bucket in which a share of the observations ends; 0 for more than any bound, and for none.
func (h histogram) bound(share float64) float64 {
	for _, limit := range slices.Sorted(maps.Keys(h)) {
		if count := h.count(); count > 0 && h[limit] >= share*count && !math.IsInf(limit, 1) {
			return limit
		}
	}
	return 0
}

func (h histogram) bounds() Bounds {
	return Bounds{P50: h.bound(0.5), P99: h.bound(0.99), Max: h.bound(1)}
}

// readAnswers reads how soon the controllers of a manager have answered, those that have answered nobody left out.
func readAnswers(text io.Reader, of string) ([]Answers, error) {
	found, err := readHistograms(text, manager.OwnAnswerMetric, manager.AnswerMetric)
	var all []Answers
	for controller, own := range found[manager.OwnAnswerMetric] {
		if own.count() > 0 {
			whole := found[manager.AnswerMetric][controller]
			all = append(all, Answers{of, controller, int(own.count()), own.bounds(), whole.bounds()})
		}
	}
	slices.SortFunc(all, func(a, b Answers) int { return cmp.Compare(a.Controller, b.Controller) })
	return all, err
}

// writeAnswers is a table of who has answered how soon.
func (r Report) writeAnswers(table io.Writer) {
	header := false
	for _, result := range r.Results {
		for _, a := range result.Answers {
			if !header {
				fmt.Fprintln(table, "\nANSWERS OF\tSIZE\tCONTROLLER\tEVENTS\tOWN SECONDS, P50\tP99\tMAX\tWITH THE LIMIT, P50\tP99\tMAX")
				header = true
			}
			fmt.Fprintf(table, "%s\t%d\t%s\t%d", a.Manager, result.Size, a.Controller, a.Count)
			for _, bound := range []float64{a.Own.P50, a.Own.P99, a.Own.Max, a.Whole.P50, a.Whole.P99, a.Whole.Max} {
				fmt.Fprintf(table, "\t%s", atMost(bound))
			}
			fmt.Fprintln(table)
		}
	}
}

// atMost is a bound in the words of a table.
func atMost(bound float64) string {
	if bound == 0 {
		return "more"
	}
	return fmt.Sprintf("≤ %g", bound)
}
