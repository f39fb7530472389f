// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Milestone is a point that every Machine passes on its way to Ready.
type Milestone string

// The milestones in their usual order. A day-2 host's Agent is recognised long before it is bound.
const (
	MachineCreated   Milestone = "created"
	BootMediaReady   Milestone = "boot media"
	HostChosen       Milestone = "host chosen"
	HostProvisioned  Milestone = "booted"
	AgentRecognised  Milestone = "recognised"
	AgentBound       Milestone = "bound"
	InstallStarted   Milestone = "installing"
	HostInstalled    Milestone = "installed"
	NodeJoined       Milestone = "node"
	MachineReadyMark Milestone = "ready"
)

var milestones = []Milestone{
	MachineCreated, BootMediaReady, HostChosen, HostProvisioned, AgentRecognised, AgentBound, InstallStarted, HostInstalled,
	NodeJoined, MachineReadyMark,
}

// Span is a part of a run: a step, or a phase of the installation.
type Span struct {
	Name       string
	Start, End time.Time
}

// machineTimeline is when a Machine was first seen to pass each milestone.
type machineTimeline struct {
	name   string
	passed map[Milestone]time.Time
}

// Timeline collects when what happened. It is safe for concurrent use.
type Timeline struct {
	mu       sync.Mutex
	start    time.Time
	machines map[types.UID]*machineTimeline
	spans    []Span
	phase    string
}

// newTimeline returns a timeline that counts from now on.
func newTimeline() *Timeline {
	return &Timeline{start: time.Now(), machines: map[types.UID]*machineTimeline{}}
}

// pass notes that a Machine has passed a milestone, unless that is known already.
func (t *Timeline) pass(uid types.UID, name string, milestone Milestone) {
	t.mu.Lock()
	defer t.mu.Unlock()
	machine := t.machines[uid]
	if machine == nil {
		machine = &machineTimeline{name: name, passed: map[Milestone]time.Time{}}
		t.machines[uid] = machine
	}
	if _, known := machine.passed[milestone]; !known {
		machine.passed[milestone] = time.Now()
	}
}

// step runs do and notes how long it took.
func (t *Timeline) step(name string, do func() error) error {
	start := time.Now()
	err := do()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, Span{Name: name, Start: start, End: time.Now()})
	return err
}

// enterPhase notes that the installation is in another phase, which ends the one before. An empty phase ends the last.
func (t *Timeline) enterPhase(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if phase == t.phase {
		return
	}
	now := time.Now()
	if last := len(t.spans) - 1; t.phase != "" {
		for i := last; i >= 0; i-- {
			if t.spans[i].End.IsZero() {
				t.spans[i].End = now
				break
			}
		}
	}
	t.phase = phase
	if phase != "" {
		t.spans = append(t.spans, Span{Name: installSpanPrefix + phase, Start: now})
	}
}

const installSpanPrefix = "installation: "

// Spans returns the steps and phases in the order in which they began. A phase that goes on ends now.
func (t *Timeline) Spans() []Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	spans := slices.Clone(t.spans)
	for i := range spans {
		if spans[i].End.IsZero() {
			spans[i].End = time.Now()
		}
	}
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return spans
}

// snapshot returns a copy of the Machines' lines, in the order in which they were created.
func (t *Timeline) snapshot() []machineTimeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]machineTimeline, 0, len(t.machines))
	for _, machine := range t.machines {
		passed := make(map[Milestone]time.Time, len(machine.passed))
		for milestone, at := range machine.passed {
			passed[milestone] = at
		}
		out = append(out, machineTimeline{name: machine.name, passed: passed})
	}
	slices.SortFunc(out, func(a, b machineTimeline) int {
		return cmp.Or(a.passed[MachineCreated].Compare(b.passed[MachineCreated]), strings.Compare(a.name, b.name))
	})
	return out
}

// WriteText writes a table of the Machines' milestones and one of the spans; times are seconds since the start.
func (t *Timeline) WriteText(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "MACHINE\t")
	for _, milestone := range milestones {
		fmt.Fprintf(table, "%s\t", strings.ToUpper(string(milestone)))
	}
	fmt.Fprintln(table)
	for _, machine := range t.snapshot() {
		fmt.Fprintf(table, "%s\t", machine.name)
		for _, milestone := range milestones {
			fmt.Fprintf(table, "%s\t", t.sinceStart(machine.passed[milestone]))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot write the timeline: %w", err)
	}
	return nil
}

// WriteSpans writes how long each step and phase took.
func (t *Timeline) WriteSpans(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PHASE\tFROM\tTOOK")
	for _, span := range t.Spans() {
		fmt.Fprintf(table, "%s\t%s\t%.1fs\n", span.Name, t.sinceStart(span.Start), span.End.Sub(span.Start).Seconds())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot write the elapsed times: %w", err)
	}
	return nil
}

func (t *Timeline) sinceStart(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.1fs", at.Sub(t.start).Seconds())
}
