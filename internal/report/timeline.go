// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Segment is a phase on a Machine's bar.
type Segment struct {
	Phase Phase
	// From is when the phase before ended, To when this one did.
	From, To time.Time
	// Also are the phases before it whose end is not known: the time of all of them is this segment.
	Also []Phase
}

// Duration is how long the segment took.
func (s Segment) Duration() time.Duration { return s.To.Sub(s.From) }

// Line is a Machine on the timeline.
type Line struct {
	// ID is the anchor of its Detail.
	ID         string
	Name, Role string
	Created    time.Time
	Segments   []Segment
	// Done says that the Machine is Ready. Gone says that it exists no more.
	Done, Gone bool
	// Next is the phase that goes on, unless the Machine is done or gone.
	Next Phase
	// Faults are what is wrong with the Machine now.
	Faults []*Fault
	// Marks are the faults of which the time is known, past ones too.
	Marks []*Fault
}

// End is when the last known milestone was passed.
func (l *Line) End() time.Time {
	if len(l.Segments) == 0 {
		return l.Created
	}
	return l.Segments[len(l.Segments)-1].To
}

// Total is the time from the creation of the Machine to its last known milestone.
func (l *Line) Total() time.Duration { return l.End().Sub(l.Created) }

// segmentsOf cuts the time since the creation at the milestones. One that is passed before the one that usually comes first takes no time.
func segmentsOf(created time.Time, passed map[Phase]time.Time) []Segment {
	var segments []Segment
	var also []Phase
	from := created
	for _, phase := range phases {
		at, known := passed[phase]
		if !known {
			also = append(also, phase)
			continue
		}
		if at.Before(from) {
			at = from
		}
		segments = append(segments, Segment{Phase: phase, From: from, To: at, Also: also})
		from, also = at, nil
	}
	return segments
}

// next is the phase behind the last one that has ended.
func next(segments []Segment) Phase {
	if len(segments) == 0 {
		return phases[0]
	}
	last := segments[len(segments)-1].Phase
	return phases[min(last.number(), len(phases)-1)]
}

// Wave is a set of Machines that were made about the same time, with a time axis of their own: a Machine that is added after weeks would
// leave nothing to see of the first installation on a common one.
type Wave struct {
	Start, End time.Time
	// Applied says that it starts with the template's application.
	Applied bool
	Groups  []Group
}

// Group has the Lines of a role.
type Group struct {
	Role  string
	Lines []*Line
}

const (
	// shortestWave is the least time by which waves are told apart.
	shortestWave = 10 * time.Minute
	// longestWait is the part of an axis by which those that still wait may prolong it.
	longestWait = 1.2
)

// wavesOf parts Lines, which are sorted by their creation. A wave ends when nothing is created for as long as it has lasted.
func wavesOf(lines []*Line, applied, now time.Time, compact bool) []Wave {
	var waves []Wave
	var end time.Time
	first := 0
	for i, line := range lines {
		if i > first && line.Created.Sub(end) > max(end.Sub(lines[first].Created), shortestWave) {
			waves = append(waves, newWave(lines[first:i], now, compact))
			first, end = i, time.Time{}
		}
		if line.End().After(end) {
			end = line.End()
		}
	}
	if len(lines) > 0 {
		waves = append(waves, newWave(lines[first:], now, compact))
	}
	if len(waves) > 0 && waves[0].Start.Sub(applied) < shortestWave {
		waves[0].Start, waves[0].Applied = applied, true
	}
	return waves
}

func newWave(lines []*Line, now time.Time, compact bool) Wave {
	wave := Wave{Start: lines[0].Created, Groups: groupsOf(lines, compact)}
	waits := false
	for _, line := range lines {
		if line.End().After(wave.End) {
			wave.End = line.End()
		}
		waits = waits || !line.Done && !line.Gone
	}
	if waits {
		known := max(wave.End.Sub(wave.Start), shortestWave)
		most := wave.Start.Add(time.Duration(longestWait * float64(known)))
		if most.After(now) {
			most = now
		}
		if most.After(wave.End) {
			wave.End = most
		}
	}
	if !wave.End.After(wave.Start) {
		wave.End = wave.Start.Add(time.Second)
	}
	return wave
}

// groupsOf sorts Lines by role. Where there are many, those that somebody has to look at come first: with a fault, then those that are not
// ready, then the slowest.
func groupsOf(lines []*Line, compact bool) []Group {
	byRole := map[string][]*Line{}
	var roles []string
	for _, line := range lines {
		if byRole[line.Role] == nil {
			roles = append(roles, line.Role)
		}
		byRole[line.Role] = append(byRole[line.Role], line)
	}
	slices.SortFunc(roles, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	groups := make([]Group, 0, len(roles))
	for _, role := range roles {
		members := byRole[role]
		slices.SortStableFunc(members, func(a, b *Line) int {
			if !compact {
				return strings.Compare(a.Name, b.Name)
			}
			return cmp.Or(a.urgency()-b.urgency(), cmp.Compare(b.Total(), a.Total()), strings.Compare(a.Name, b.Name))
		})
		groups = append(groups, Group{Role: role, Lines: members})
	}
	return groups
}

func (l *Line) urgency() int {
	switch {
	case len(l.Faults) > 0:
		return 0
	case !l.Done && !l.Gone:
		return 1
	default:
		return 2
	}
}

func rank(role string) int {
	switch role {
	case roleControlPlane:
		return 0
	case roleGone:
		return 2
	default:
		return 1
	}
}

// Tick is a line of a time axis.
type Tick struct {
	// At is its part of the axis, from 0 to 1.
	At    float64
	After time.Duration
}

// steps are the distances that ticks may have.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// mostTicks is how many labels fit on an axis.
const mostTicks = 7

// ticksOf returns ticks at round times.
func ticksOf(length time.Duration) []Tick {
	step := steps[0]
	for _, step = range steps {
		if length/step <= mostTicks {
			break
		}
	}
	for length/step > mostTicks {
		step *= 2
	}
	var ticks []Tick
	for after := time.Duration(0); after <= length; after += step {
		ticks = append(ticks, Tick{At: float64(after) / float64(length), After: after})
	}
	return ticks
}
