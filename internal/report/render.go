// SPDX-License-Identifier: Apache-2.0

package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.tmpl parts.tmpl style.css
var files embed.FS

var page = template.Must(template.New("page.tmpl").Funcs(template.FuncMap{
	"style":    style,
	"phases":   legend,
	"duration": duration,
	"clock":    clock,
	"ticks":    func(w Wave) []Tick { return ticksOf(w.End.Sub(w.Start)) },
	"percent":  func(part float64) float64 { return whole * part },
	"round":    func(part float64) string { return fmt.Sprintf("%.2f", part) },
	"after":    after,
	"odd":      func(i int) bool { return i%2 == 1 },
	"cells":    cells,
	"sum":      sum,
	"first":    func(n int, faults []*Fault) []*Fault { return faults[:min(n, len(faults))] },
	"rest":     func(n int, faults []*Fault) []*Fault { return faults[min(n, len(faults)):] },
	"args":     func(of any, r *Report) args { return args{of, r} },
	"per":      func(count, machines int) string { return fmt.Sprintf("%.1f", float64(count)/float64(machines)) },
	"share":    func(count, most int) float64 { return whole * float64(count) / float64(most) },
	"mark":     func(v Verdict) string { return marks[v] },
}).ParseFS(files, "page.tmpl", "parts.tmpl"))

// args are what a part of the page is made of, and the Report that it is in.
type args struct {
	Of     any
	Report *Report
}

// marks stand beside the colour of a Verdict, which not everybody can tell from others.
var marks = map[Verdict]string{Good: "✔", Waits: "…", Goes: "↻", Wrong: "✖"}

// style returns the style sheet. It is this package's own file, so nothing in it has to be escaped.
func style() (template.CSS, error) {
	sheet, err := files.ReadFile("style.css")
	return template.CSS(sheet), err //nolint:gosec // It is embedded.
}

// legendEntry is a phase as the legend shows it.
type legendEntry struct {
	Number         int
	Label, Meaning string
}

func legend() []legendEntry {
	entries := make([]legendEntry, 0, len(phases))
	for _, phase := range phases {
		entries = append(entries, legendEntry{phase.number(), phase.label(), phaseText[phase].meaning})
	}
	return entries
}

// after is the time of something on the clock of the report, which begins with the template's application.
func after(at, start time.Time) string {
	if at.IsZero() {
		return ""
	}
	if at.Before(start) {
		return duration(at.Sub(start))
	}
	return "+" + duration(at.Sub(start))
}

// cell is a phase of a Machine in the table of times.
type cell struct{ Text, Title string }

// cells has one for each phase. A phase whose end is not known has a dot: its time is part of the next one that is.
func cells(l *Line) []cell {
	out := make([]cell, len(phases))
	for i := range out {
		out[i].Text = "–"
	}
	for _, segment := range l.Segments {
		out[segment.Phase.number()-1] = cell{Text: duration(segment.Duration())}
		for _, phase := range segment.Also {
			out[phase.number()-1] = cell{Text: "·", Title: "not known by itself; its time is part of " + segment.Phase.label()}
		}
	}
	return out
}

func sum(writes []Write) int {
	all := 0
	for _, write := range writes {
		all += write.Count
	}
	return all
}

// Drawn is a Line with its bar.
type Drawn struct {
	*Line
	Bar   bar
	State string
}

// Draw returns the Lines of a group with their bars.
func (r *Report) Draw(w Wave, g Group) []Drawn {
	out := make([]Drawn, 0, len(g.Lines))
	for _, line := range g.Lines {
		out = append(out, Drawn{line, w.barOf(line, r.Taken), line.state(r.Taken)})
	}
	return out
}

// Summary says in a sentence how the cluster is.
func (r *Report) Summary() string {
	text := "The cluster is not Available"
	if r.Available {
		text = "The cluster is Available"
	}
	text += fmt.Sprintf("; %d of %d Machines are ready", r.Done, r.Machines-r.Gone)
	if r.Waiting > 0 {
		text += fmt.Sprintf(", %d wait", r.Waiting)
	}
	if r.Faulty > 0 {
		text += fmt.Sprintf(", %d report faults", r.Faulty)
	}
	return text + "."
}

// MostWrites is the largest number of writes of one kind, to which the others are compared.
func (r *Report) MostWrites() int {
	most := 1
	for _, writer := range r.Writes {
		for _, write := range writer.Writes {
			most = max(most, write.Count)
		}
	}
	return most
}

// Write renders the Report as one HTML page.
func (r *Report) Write(out io.Writer) error {
	if err := page.Execute(out, r); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
