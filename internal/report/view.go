// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"
)

// bar is what is drawn of a Line. All positions are percents of the axis.
type bar struct {
	Rects []rect
	// Open is the time that a Machine has waited since its last milestone; its width is zero when it does not wait.
	Open rect
	// Beyond says that the wait is longer than the axis.
	Beyond bool
	Marks  []mark
}

type rect struct {
	X, Width float64
	Number   int
	Label    string
	Title    string
}

// Middle is where a label is.
func (r rect) Middle() float64 { return r.X + r.Width/2 }

type mark struct {
	X     float64
	Open  bool
	Title string
}

const (
	whole = 100.0
	// thinnest is the width of a segment that took next to no time: it is drawn all the same.
	thinnest = 0.2
	// A segment of these widths has room for its number, and for its name.
	roomForNumber = 2.6
	roomForName   = 18
)

// place is a time's place on the axis of a wave.
func (w Wave) place(at time.Time) float64 {
	part := whole * float64(at.Sub(w.Start)) / float64(w.End.Sub(w.Start))
	return min(max(part, 0), whole)
}

func (w Wave) barOf(l *Line, now time.Time) bar {
	var b bar
	for _, segment := range l.Segments {
		from, to := w.place(segment.From), w.place(segment.To)
		r := rect{X: from, Width: max(to-from, thinnest), Number: segment.Phase.number(), Title: segmentTitle(w, l, segment)}
		r.X = min(r.X, whole-r.Width)
		switch {
		case r.Width >= roomForName:
			r.Label = fmt.Sprintf("%d %s", r.Number, segment.Phase.label())
		case r.Width >= roomForNumber:
			r.Label = fmt.Sprint(r.Number)
		}
		b.Rects = append(b.Rects, r)
	}
	if l.Next != "" {
		from := w.place(l.End())
		b.Open = rect{
			X: from, Width: max(w.place(now)-from, thinnest), Number: l.Next.number(),
			Title: fmt.Sprintf("%s: waits for “%s” since %s", l.Name, l.Next.label(), duration(now.Sub(l.End()))),
		}
		b.Open.X = min(b.Open.X, whole-b.Open.Width)
		b.Beyond = now.After(w.End)
	}
	for _, fault := range l.Marks {
		if fault.From.Before(w.Start) || fault.From.After(w.End) {
			continue
		}
		title := fmt.Sprintf("%s: %s %s at +%s: %s", l.Name, fault.What, fault.Reason, duration(fault.From.Sub(w.Start)), fault.Message)
		b.Marks = append(b.Marks, mark{X: w.place(fault.From), Open: fault.Open, Title: title})
	}
	return b
}

func segmentTitle(w Wave, l *Line, s Segment) string {
	title := fmt.Sprintf(
		"%s: %s took %s, until +%s (%s)", l.Name, s.Phase.label(), duration(s.Duration()), duration(s.To.Sub(w.Start)), clock(s.To),
	)
	if len(s.Also) > 0 {
		names := make([]string, 0, len(s.Also))
		for _, phase := range s.Also {
			names = append(names, phase.label())
		}
		title += "; when " + strings.Join(names, ", ") + " ended is not known, so their time is part of it"
	}
	return title
}

// state says in a few words where a Machine is.
func (l *Line) state(now time.Time) string {
	switch {
	case l.Gone:
		return "gone"
	case l.Done && len(l.Segments) == 0:
		return "ready"
	case l.Done:
		return duration(l.Total())
	default:
		return fmt.Sprintf("waits %s for “%s”", duration(now.Sub(l.End())), l.Next.label())
	}
}

const day = 24 * time.Hour

// duration writes a duration with at most two units.
func duration(d time.Duration) string {
	if d < 0 {
		return "-" + duration(-d)
	}
	if tenths := d.Round(time.Second / 10); tenths < time.Minute {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", tenths.Seconds()), ".0") + "s"
	}
	d = d.Round(time.Second)
	switch {
	case d < time.Hour:
		return twoUnits(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return twoUnits(d, time.Hour, "h", time.Minute, "m")
	default:
		return twoUnits(d, day, "d", time.Hour, "h")
	}
}

func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d%s", rest, smallName)
	}
	return text
}

const clockLayout = "2006-01-02 15:04:05 UTC"

func clock(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(clockLayout)
}
