// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// passedAt is when milestones were passed, in seconds since start.
func passedAt(seconds map[Phase]int) map[Phase]time.Time {
	passed := map[Phase]time.Time{}
	for phase, s := range seconds {
		passed[phase] = start.Add(time.Duration(s) * time.Second)
	}
	return passed
}

func TestSegments(t *testing.T) {
	for name, test := range map[string]struct {
		passed map[Phase]int
		want   []string
		next   Phase
	}{
		"nothing yet": {next: Media},
		"in order":    {passed: map[Phase]int{Media: 5, HostChosen: 7}, want: []string{"media 0-5 []", "host_chosen 5-7 []"}, next: Booted},
		"an end is not known": {
			passed: map[Phase]int{Media: 5, Bound: 9, Installed: 20}, next: Node,
			want: []string{"media 0-5 []", "bound 5-9 [host_chosen booted recognised]", "installed 9-20 [installing]"},
		},
		"out of order": {passed: map[Phase]int{Media: 5, HostChosen: 3, Booted: 8}, next: Recognised,
			want: []string{"media 0-5 []", "host_chosen 5-5 []", "booted 5-8 []"}},
		"ready": {passed: map[Phase]int{Ready: 5}, next: Ready,
			want: []string{"ready 0-5 [media host_chosen booted recognised bound installing installed node]"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			segments := segmentsOf(start, passedAt(test.passed))
			var got []string
			for _, s := range segments {
				got = append(got, fmt.Sprintf("%s %.0f-%.0f %v", s.Phase, s.From.Sub(start).Seconds(), s.To.Sub(start).Seconds(), s.Also))
			}
			g.Expect(got).To(Equal(test.want))
			g.Expect(next(segments)).To(Equal(test.next))
		})
	}
}

// bare is a Line that was created and became Ready after so many minutes; zero is that it waits.
func bare(name string, created, took int) *Line {
	line := &Line{Name: name, Role: roleWorkers, Created: start.Add(time.Duration(created) * time.Minute)}
	if took > 0 {
		line.Done = true
		line.Segments = []Segment{{Phase: Ready, From: line.Created, To: line.Created.Add(time.Duration(took) * time.Minute)}}
	}
	return line
}

func TestWaves(t *testing.T) {
	for name, test := range map[string]struct {
		lines []*Line
		want  []string
	}{
		"none":                                {},
		"from the template's application":     {lines: []*Line{bare("a", 1, 40)}, want: []string{"0-41 [a]"}},
		"one that is added soon":              {lines: []*Line{bare("a", 0, 40), bare("b", 70, 40)}, want: []string{"0-110 [a b]"}},
		"one that is added late":              {lines: []*Line{bare("a", 0, 40), bare("b", 90, 30)}, want: []string{"0-40 [a]", "90-120 [b]"}},
		"one that waits prolongs it a little": {lines: []*Line{bare("a", 0, 40), bare("b", 0, 0)}, want: []string{"0-48 [a b]"}},
		"one that is all there is":            {lines: []*Line{bare("a", 0, 0)}, want: []string{"0-12 [a]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, wave := range wavesOf(test.lines, start, start.Add(1000*time.Minute), false) {
				var names []string
				for _, line := range wave.Groups[0].Lines {
					names = append(names, line.Name)
				}
				got = append(got, fmt.Sprintf("%.0f-%.0f %v", wave.Start.Sub(start).Minutes(), wave.End.Sub(start).Minutes(), names))
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// TestOrder: among many, those to look at come first.
func TestOrder(t *testing.T) {
	faulty := bare("faulty", 0, 10)
	faulty.Faults = []*Fault{{}}
	lines := []*Line{
		bare("fast", 0, 10),
		bare("slow", 0, 50),
		bare("waits", 0, 0),
		faulty,
		{Name: "cp", Role: roleControlPlane, Created: start},
	}
	names := func(compact bool) (names []string) {
		for _, group := range groupsOf(lines, compact) {
			for _, line := range group.Lines {
				names = append(names, line.Name)
			}
		}
		return names
	}
	g := NewWithT(t)
	g.Expect(names(true)).To(Equal([]string{"cp", "faulty", "waits", "slow", "fast"}))
	g.Expect(names(false)).To(Equal([]string{"cp", "fast", "faulty", "slow", "waits"}))
}

func TestTicks(t *testing.T) {
	for length, want := range map[time.Duration]string{
		time.Second:          "0s 1s",
		47 * time.Minute:     "0s 10m 20m 30m 40m",
		3 * time.Hour:        "0s 30m 1h 1h 30m 2h 2h 30m 3h",
		400 * 24 * time.Hour: "0s 64d 128d 192d 256d 320d 384d",
	} {
		text := ""
		for _, tick := range ticksOf(length) {
			text += " " + duration(tick.After)
		}
		NewWithT(t).Expect(text).To(Equal(" "+want), "axis of %s", length)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 240 * time.Millisecond: "0.2s", 12300 * time.Millisecond: "12.3s", 59960 * time.Millisecond: "1m", 7 * time.Minute: "7m",
		605 * time.Second: "10m 5s", 2*time.Hour + 3*time.Minute: "2h 3m", 76 * time.Hour: "3d 4h", -time.Minute: "-1m",
	} {
		NewWithT(t).Expect(duration(d)).To(Equal(want))
	}
}

func TestPercentile(t *testing.T) {
	g := NewWithT(t)
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i))
	}
	g.Expect(*percentile(values, 0.5)).To(Equal(time.Duration(50)))
	g.Expect(*percentile(values, 0.95)).To(Equal(time.Duration(95)))
	g.Expect(*percentile(values, 1)).To(Equal(time.Duration(100)))
	g.Expect(*percentile(values[:1], 0.95)).To(Equal(time.Duration(100)))
	g.Expect(percentile(nil, 0.5)).To(BeNil())
}

// TestStatsLeaveOutWhatIsNotKnown: the time of several phases is counted for none of them.
func TestStatsLeaveOutWhatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	lines := []*Line{
		{Role: roleWorkers, Created: start, Segments: segmentsOf(start, passedAt(map[Phase]int{Media: 10, Bound: 99}))},
		{Role: roleWorkers, Created: start, Segments: segmentsOf(start, passedAt(map[Phase]int{Media: 20}))},
	}
	stats := statsOf([]Wave{{Groups: []Group{{roleWorkers, lines}, {roleControlPlane, lines[:1]}}}})
	g.Expect(stats).To(HaveLen(1), "a role with one Machine has no statistics")
	g.Expect(*stats[0].Rows[0].Phases[0]).To(Equal(10 * time.Second))
	g.Expect(*stats[0].Rows[2].Phases[0]).To(Equal(20 * time.Second))
	g.Expect(stats[0].Rows[2].Phases[Bound.number()-1]).To(BeNil())
	g.Expect(stats[0].Rows[2].Total).To(BeNil())
}
