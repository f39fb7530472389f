// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// extrapolated is the number of clusters that nobody measures every time.
const extrapolated = 3500

// Report is what a run has measured.
type Report struct {
	Machine Machine   `json:"machine"`
	Time    time.Time `json:"time"`
	Results []Result  `json:"results"`
	Growth  []Growth  `json:"growth"`
	// Memory is what idle clusters cost, by manager.
	Memory map[string]Memory `json:"memory,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	Processor string  `json:"processor"`
	CPUs      int     `json:"cpus"`
	MemoryGiB float64 `json:"memoryGiB"`
	Go        string  `json:"go"`
}

// Growth is how a measure of a manager grows with the size in a profile: by the power Exponent.
type Growth struct {
	Profile  string  `json:"profile"`
	Manager  string  `json:"manager"`
	Measure  string  `json:"measure"`
	Exponent float64 `json:"exponent"`
	// Limit is what the exponent may be at most; 0 is no limit.
	Limit float64 `json:"limit,omitempty"`
}

// Memory is a line through the memory of a manager over the number of idle clusters.
type Memory struct {
	// Line is in MiB.
	Line Line `json:"line"`
	// KiBPerCluster is its slope, and ExtrapolatedMiB its value at 3,500 clusters.
	KiBPerCluster   float64 `json:"kibPerCluster"`
	ExtrapolatedMiB float64 `json:"extrapolatedMiB"`
}

// measure is what is fitted, with the most that the exponent may be. So little as floor is no cost, however it grows.
type measure struct {
	name         string
	limit, floor float64
	of           func(Cost) float64
}

// measures: what is counted is the same on a busy machine; what CPUs take is not, and may look worse than it is.
var measures = []measure{
	{"passes", countLimit, 40, func(c Cost) float64 { return float64(c.Passes) }},
	{"requests", countLimit, 40, func(c Cost) float64 { return float64(c.Reads + c.Writes) }},
	{"CPU seconds", timeLimit, 10, func(c Cost) float64 { return c.CPUSeconds }},
	{"max RSS", 0, 0, func(c Cost) float64 { return c.MaxRSSMiB }},
}

const (
	countLimit = 1.2
	timeLimit  = 1.6
)

// limitOf is the most that the exponent of a measure may be; 0 is no limit.
func (m measure) limitOf(at []point) float64 {
	for _, p := range at {
		if p.value >= m.floor {
			return m.limit
		}
	}
	return 0
}

func newReport(results []Result) Report {
	report := Report{Machine: thisMachine(), Time: time.Now().UTC().Truncate(time.Second), Results: results, Memory: map[string]Memory{}}
	for _, profile := range profilesOf(results) {
		for _, manager := range []string{bootstrapName, controlPlaneName} {
			report.Growth = append(report.Growth, growthOf(results, profile, manager)...)
		}
	}
	for _, manager := range []string{bootstrapName, controlPlaneName} {
		fitted, ok := lineThrough(points(results, profileIdle, manager, func(c Cost) float64 { return c.RSSMiB }))
		if ok {
			report.Memory[manager] = Memory{Line: fitted, KiBPerCluster: fitted.Slope * 1024, ExtrapolatedMiB: fitted.At(extrapolated)}
		}
	}
	return report
}

// growthOf is how all that a manager costs in a profile grows.
func growthOf(results []Result, profile, manager string) []Growth {
	var growth []Growth
	for _, m := range measures {
		at := points(results, profile, manager, m.of)
		if power, ok := exponent(at); ok {
			growth = append(growth, Growth{
				Profile: profile, Manager: manager, Measure: m.name, Exponent: power, Limit: m.limitOf(at),
			})
		}
	}
	return growth
}

func profilesOf(results []Result) []string {
	var profiles []string
	for _, r := range results {
		if !slices.Contains(profiles, r.Profile) {
			profiles = append(profiles, r.Profile)
		}
	}
	return profiles
}

// points are a measure of a manager at all sizes of a profile.
func points(results []Result, profile, manager string, of func(Cost) float64) []point {
	var out []point
	for _, r := range results {
		if cost, ok := r.Costs[manager]; ok && r.Profile == profile {
			out = append(out, point{float64(r.Size), of(cost)})
		}
	}
	return out
}

// problem is everything that must not be.
func (r Report) problem() error {
	var errs []error
	for _, result := range r.Results {
		for _, problem := range result.Problems {
			errs = append(errs, errors.New(problem))
		}
	}
	for _, g := range r.Growth {
		if g.Limit > 0 && g.Exponent > g.Limit {
			errs = append(errs, fmt.Errorf("%s of %s in %s grow with the size to the power of %.2f, and %.2f is allowed", g.Measure, g.Manager,
				g.Profile, g.Exponent, g.Limit))
		}
	}
	return errors.Join(errs...)
}

// write shows the tables, and keeps them with all figures as JSON.
func (r Report) write(opts Options) error {
	if opts.Output != nil {
		if err := r.writeTables(opts.Output); err != nil {
			return err
		}
	}
	if opts.Out == "" {
		return nil
	}
	if err := os.MkdirAll(opts.Out, 0o755); err != nil {
		return fmt.Errorf("make the folder for the results: %w", err)
	}
	figures, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	var tables bytes.Buffer
	if err := r.writeTables(&tables); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"scale.json": append(figures, '\n'), "scale.txt": tables.Bytes()} {
		if err := os.WriteFile(filepath.Join(opts.Out, name), data, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func (r Report) writeTables(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s, %d CPUs, %.0f GiB, %s\n\n", r.Machine.Processor, r.Machine.CPUs, r.Machine.MemoryGiB, r.Machine.Go)
	fmt.Fprintln(table, "PROFILE\tSIZE\tMANAGER\tSECONDS\tCPU S\tP95\tRSS MIB\tMAX\tHEAP\tGOROUTINES\tTCP\tPASSES\tREADS\tWRITES\tREFUSED")
	for _, result := range r.Results {
		for _, manager := range slices.Sorted(maps.Keys(result.Costs)) {
			c := result.Costs[manager]
			fmt.Fprintf(table, "%s\t%d\t%s\t%.1f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%d\t%d\t%d\t%d\n", result.Profile, result.Size, manager,
				result.Seconds, c.CPUSeconds, c.CPUP95, c.RSSMiB, c.MaxRSSMiB, c.HeapMiB, c.Goroutines, c.Connections, c.Passes, c.Reads,
				c.Writes, c.Refused)
		}
	}
	r.writeTimes(table)
	r.writeAnswers(table)
	if len(r.Growth) > 0 {
		fmt.Fprintln(table, "\nGROWTH OF\tPROFILE\tMANAGER\tEXPONENT\tLIMIT")
	}
	for _, g := range r.Growth {
		limit := "-"
		if g.Limit > 0 {
			limit = fmt.Sprintf("%.2f", g.Limit)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t%s\n", g.Measure, g.Profile, g.Manager, g.Exponent, limit)
	}
	if len(r.Memory) > 0 {
		fmt.Fprintf(table, "\nMEMORY OF\tMIB AT 0\tKIB PER CLUSTER\tR²\tMIB AT %d\n", extrapolated)
	}
	for _, manager := range slices.Sorted(maps.Keys(r.Memory)) {
		m := r.Memory[manager]
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.3f\t%.0f\n", manager, m.Line.Intercept, m.KiBPerCluster, m.Line.Fit, m.ExtrapolatedMiB)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

func (r Report) writeTimes(table io.Writer) {
	header := false
	for _, result := range r.Results {
		for _, name := range slices.Sorted(maps.Keys(result.Times)) {
			if !header {
				fmt.Fprintln(table, "\nTIME OF\tSIZE\tFROM AND TO\tSECONDS")
				header = true
			}
			fmt.Fprintf(table, "%s\t%d\t%s\t%.3f\n", result.Profile, result.Size, name, result.Times[name])
		}
	}
}

// summary is a result in a line.
func summary(r Result) string {
	var parts []string
	for _, manager := range slices.Sorted(maps.Keys(r.Costs)) {
		c := r.Costs[manager]
		parts = append(parts, fmt.Sprintf("%s %.2f CPU s, %.0f MiB, %d passes, %d writes (%d refused)", manager, c.CPUSeconds, c.MaxRSSMiB,
			c.Passes, c.Writes, c.Refused))
	}
	return fmt.Sprintf("%s of %d took %.1f s: %s", r.Profile, r.Size, r.Seconds, strings.Join(parts, "; "))
}

func thisMachine() Machine {
	m := Machine{Processor: "unknown processor", CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.Processor = cmp.Or(lineOf(string(info), "model name"), m.Processor)
	}
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.MemoryGiB = kibibytes(string(info), "MemTotal") / (1 << 20)
	}
	return m
}

// lineOf is what a line of a file in /proc says.
func lineOf(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
