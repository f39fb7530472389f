// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Cost is what a manager has cost in a phase, and what it has at its end.
type Cost struct {
	// CPUSeconds are user and system time, and CPUP95 is how many CPUs were busy at most in 95 of 100 seconds. MaxRSSMiB is the most memory
	// since the process began.
	CPUSeconds float64 `json:"cpuSeconds"`
	CPUP95     float64 `json:"cpuP95"`
	RSSMiB     float64 `json:"rssMiB"`
	MaxRSSMiB  float64 `json:"maxRSSMiB"`
	HeapMiB    float64 `json:"heapInUseMiB"`
	Goroutines int     `json:"goroutines"`
	// Connections are those to installed clusters, by TCP.
	Connections int `json:"connections"`
	// Passes are those of all controllers.
	Passes int `json:"passes"`
	// Reads, Writes and Refused, which are among the writes, are requests to the management cluster; Requests counts them by verb and
	// resource. Leases are left out.
	Reads    int            `json:"reads"`
	Writes   int            `json:"writes"`
	Refused  int            `json:"refused"`
	Requests map[string]int `json:"requests,omitempty"`

	written []string
}

// Result is a phase at a size.
type Result struct {
	// Profile is the phase, and Size the number of clusters, or of hosts.
	Profile string `json:"profile"`
	Size    int    `json:"size"`
	// Seconds is how long it took until there was nothing to do, or for how long nothing was to do.
	Seconds float64 `json:"seconds"`
	// Costs are by manager.
	Costs map[string]Cost `json:"costs"`
	// Times are seconds, such as those between an event and its answer.
	Times map[string]float64 `json:"times,omitempty"`
	// Answers are how soon the controllers have answered events.
	Answers []Answers `json:"answers,omitempty"`
	// Problems are what must not be.
	Problems []string `json:"problems,omitempty"`
}

// span is a phase that has begun.
type span struct {
	offset int64
	used   map[string]usage
	passes map[string]float64
}

// begin begins a phase. What replicas cost that start later counts from their start.
func (h *hub) begin(ctx context.Context) (span, error) {
	s := span{used: map[string]usage{}, passes: map[string]float64{}}
	h.samples = map[string][]sample{}
	var err error
	if s.offset, err = auditEnd(h.cp.AuditLog()); err != nil {
		return s, err
	}
	for name, r := range h.replicas {
		if s.used[name], err = usageOf(r.PID()); err != nil {
			return s, err
		}
		told, err := r.gauges(ctx)
		if err != nil {
			return s, err
		}
		s.passes[name] = told.passes
	}
	return s, nil
}

// sampleInterval is the shortest time over which the use of CPUs is averaged.
const sampleInterval = time.Second

// sample is how much a process had used at a time.
type sample struct {
	at         time.Time
	cpuSeconds float64
}

// sample looks at what the replicas have used, unless that was done a moment ago.
func (h *hub) sample() {
	for name, r := range h.replicas {
		at, taken := time.Now(), h.samples[name]
		if len(taken) > 0 && at.Sub(taken[len(taken)-1].at) < sampleInterval {
			continue
		}
		if used, err := usageOf(r.PID()); err == nil { // One that has ended is told by who needs it.
			h.samples[name] = append(taken, sample{at, used.cpuSeconds})
		}
	}
}

// watch samples until ctx ends.
func (h *hub) watch(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { h.sample() }, sampleInterval)
}

// rest lets time pass in which nothing is waited for.
func (h *hub) rest(ctx context.Context, d time.Duration) error {
	resting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	h.watch(resting)
	return ctx.Err()
}

// rates are how many CPUs were busy between two samples, sorted.
func rates(samples []sample) []float64 {
	var out []float64
	for i := 1; i < len(samples); i++ {
		out = append(out, (samples[i].cpuSeconds-samples[i-1].cpuSeconds)/samples[i].at.Sub(samples[i-1].at).Seconds())
	}
	slices.Sort(out)
	return out
}

// costs are those of the replicas that run, since the phase began.
func (h *hub) costs(ctx context.Context, s span) (map[string]Cost, error) {
	costs := map[string]Cost{}
	tallies, err := talliesSince(h.cp.AuditLog(), s.offset)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(seedAddress, strconv.Itoa(apiPort))
	for name, r := range h.replicas {
		used, err := usageOf(r.PID())
		if err != nil {
			return nil, err
		}
		told, err := r.gauges(ctx)
		if err != nil {
			return nil, err
		}
		connected, err := connections(r.PID(), address)
		if err != nil {
			return nil, err
		}
		cost := Cost{
			CPUSeconds: used.cpuSeconds - s.used[name].cpuSeconds, CPUP95: percentile(rates(h.samples[name]), 0.95),
			RSSMiB: used.rssKiB / 1024, MaxRSSMiB: used.maxRSSKiB / 1024,
			HeapMiB: told.heapMiB, Goroutines: int(told.goroutines), Connections: connected, Passes: int(told.passes - s.passes[name]),
		}
		if requested := tallies[r.User]; requested != nil {
			cost.Reads, cost.Writes, cost.Refused = requested.reads, requested.writes, requested.refused
			cost.Requests, cost.written = requested.requests, requested.written
		}
		manager, _, _ := strings.Cut(name, standby)
		costs[manager] = cost
	}
	return costs, nil
}

// phase is a phase from its begin to its end.
func (h *hub) phase(ctx context.Context, profile string, do func(context.Context) (time.Duration, error)) (Result, error) {
	result := Result{Profile: profile, Size: len(h.copies)}
	begun, err := h.begin(ctx)
	if err != nil {
		return result, err
	}
	took, err := do(ctx)
	if err != nil {
		return result, fmt.Errorf("%s of %d: %w", profile, result.Size, err)
	}
	result.Seconds = took.Seconds()
	result.Costs, err = h.costs(ctx, begun)
	return result, err
}

// wroteNothing notes which objects were written where nothing has happened.
func (r *Result) wroteNothing() {
	for _, manager := range []string{bootstrapName, controlPlaneName} {
		if cost := r.Costs[manager]; cost.Writes > 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("%s of %d: %s wrote %d times, and nothing had changed: %s", r.Profile, r.Size, manager,
				cost.Writes, strings.Join(slices.Sorted(slices.Values(cost.written)), ", ")))
		}
	}
}
