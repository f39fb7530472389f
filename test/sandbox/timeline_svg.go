// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

const (
	svgNameWidth  = 240
	svgChartWidth = 900
	svgRowHeight  = 26
	svgBarHeight  = 16
	svgTop        = 56
	svgTextDrop   = 12
)

// segmentColors colour the time before each milestone, the first of which begins the bar.
var segmentColors = map[Milestone]string{
	BootMediaReady: "#bdbdbd", HostChosen: "#9e9e9e", HostProvisioned: "#ffcc80", AgentRecognised: "#ffb74d",
	AgentBound: "#90caf9", InstallStarted: "#64b5f6", HostInstalled: "#1e88e5", NodeJoined: "#81c784", MachineReadyMark: "#43a047",
}

// WriteSVG writes a chart with a bar for every Machine, from its creation to Ready, and one for every span.
func (t *Timeline) WriteSVG(out io.Writer) error {
	machines, spans := t.snapshot(), t.Spans()
	scale := t.scale(machines, spans)
	height := svgTop + (len(machines)+len(spans)+1)*svgRowHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		svgNameWidth+svgChartWidth+svgRowHeight, height)
	writeLegend(&b)
	y := svgTop
	for _, machine := range machines {
		svgLabel(&b, y, machine.name)
		t.writeMachine(&b, y, machine, scale)
		y += svgRowHeight
	}
	y += svgRowHeight / 2
	for _, span := range spans {
		svgLabel(&b, y, span.Name)
		t.svgBar(&b, y, span.Start, span.End, scale, "#b39ddb", fmt.Sprintf("%s: %.1fs", span.Name, span.End.Sub(span.Start).Seconds()))
		y += svgRowHeight
	}
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("cannot write the timeline: %w", err)
	}
	return nil
}

// scale is the number of pixels of a second.
func (t *Timeline) scale(machines []machineTimeline, spans []Span) float64 {
	end := t.start.Add(time.Second)
	for _, span := range spans {
		if span.End.After(end) {
			end = span.End
		}
	}
	for _, machine := range machines {
		for _, at := range machine.passed {
			if at.After(end) {
				end = at
			}
		}
	}
	return svgChartWidth / end.Sub(t.start).Seconds()
}

func (t *Timeline) writeMachine(b *strings.Builder, y int, machine machineTimeline, scale float64) {
	from := machine.passed[MachineCreated]
	for _, milestone := range milestones[1:] {
		at := machine.passed[milestone]
		if at.IsZero() || at.Before(from) {
			continue
		}
		title := fmt.Sprintf("%s: %s after %s", machine.name, milestone, t.sinceStart(at))
		t.svgBar(b, y, from, at, scale, segmentColors[milestone], title)
		from = at
	}
}

func (t *Timeline) svgBar(b *strings.Builder, y int, from, to time.Time, scale float64, color, title string) {
	x := svgNameWidth + from.Sub(t.start).Seconds()*scale
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`+"\n",
		x, y, max(to.Sub(from).Seconds()*scale, 1), svgBarHeight, color, html.EscapeString(title))
}

func svgLabel(b *strings.Builder, y int, label string) {
	fmt.Fprintf(b, `<text x="0" y="%d">%s</text>`+"\n", y+svgTextDrop, html.EscapeString(label))
}

func writeLegend(b *strings.Builder) {
	width := svgChartWidth / len(segmentColors)
	for i, milestone := range milestones[1:] {
		x := svgNameWidth + i*width
		fmt.Fprintf(b, `<rect x="%d" y="16" width="12" height="12" fill="%s"/><text x="%d" y="27">%s</text>`+"\n",
			x, segmentColors[milestone], x+svgBarHeight, html.EscapeString("until "+string(milestone)))
	}
}
