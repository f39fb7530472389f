// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Profiles returns what Options.Profiles may have.
func Profiles() []string {
	return append(hubProfiles(), profileInstall)
}

// Sizes are numbers of clusters, and of hosts for the profile burst.
type Sizes struct{ Clusters, Hosts []int }

// hubProfiles are those of clusters that are installed already.
func hubProfiles() []string {
	return []string{profileIdle, profileRestart, profileStorm, profileResync, profileFailover, profileBurst, profileFairness}
}

// pinned are the sizes that have a name, so that runs can be compared.
var pinned = map[string]Sizes{
	"small": {Clusters: []int{10, 20, 40}, Hosts: []int{25, 50, 100}},
	"full":  {Clusters: []int{50, 200, 500, 1000}, Hosts: []int{50, 200, 500, 1000}},
}

// onlyHostsPrefix begins sizes that are those of hosts alone: as many clusters take many times as long.
const onlyHostsPrefix = "hosts:"

// ParseSizes reads small, full, or numbers with commas between them, which are then those of clusters and of hosts, or of hosts alone.
func ParseSizes(text string) (Sizes, error) {
	if sizes, ok := pinned[text]; ok {
		return sizes, nil
	}
	text, onlyHosts := strings.CutPrefix(text, onlyHostsPrefix)
	var sizes []int
	for word := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(word)
		if err != nil || size < 1 {
			return Sizes{}, fmt.Errorf(
				"%q is no size: choose small, full, or numbers with commas between them, after %s if there are to be no clusters", word,
				onlyHostsPrefix,
			)
		}
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	if onlyHosts {
		return Sizes{Hosts: sizes}, nil
	}
	return Sizes{Clusters: sizes, Hosts: sizes}, nil
}

// Options are the settings of a Run.
type Options struct {
	// Profiles are what is measured. Default: all but install.
	Profiles []string
	Sizes    Sizes
	// Idle is for how long idle managers are watched, and Window within which all hosts of a burst register. Default: a minute. All clusters
	// that are installed are made within Window as well, at once when it is zero.
	Idle, Window time.Duration
	// Speed is how many times faster than by default everything simulated is during installations; zero is 1.
	Speed float64
	// Busy is true where other work runs on the same CPUs: how much longer somebody waits is shown then, and no reason to fail.
	Busy bool
	// Out is the folder for the results; empty keeps none.
	Out string
	// Output gets the table, and Progress what is being done.
	Output, Progress io.Writer
}

func (o Options) idle() time.Duration   { return orMinute(o.Idle) }
func (o Options) window() time.Duration { return orMinute(o.Window) }

func orMinute(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Minute
	}
	return d
}

// measurement is a run.
type measurement struct {
	opts    Options
	results []Result
}

func (m *measurement) wants(profiles ...string) bool {
	return slices.ContainsFunc(profiles, func(profile string) bool { return slices.Contains(m.opts.Profiles, profile) })
}

// add keeps a result. In no profile but a burst is there anything to write.
func (m *measurement) add(result Result, err error) error {
	if err != nil {
		return err
	}
	if !slices.Contains([]string{profileBurst, profileInstall, profileFairness, profileFairness + alone}, result.Profile) {
		result.wroteNothing()
	}
	fmt.Fprintln(m.opts.Progress, summary(result))
	m.results = append(m.results, result)
	return nil
}

// Run measures, writes the results, and returns an error that names everything that must not be: what was written although nothing had
// changed, hosts that were not bound, and costs that grow faster than the clusters or hosts. The results are written in any case.
func Run(ctx context.Context, opts Options) (Report, error) {
	if len(opts.Profiles) == 0 {
		opts.Profiles = hubProfiles()
	}
	for _, profile := range opts.Profiles {
		if !slices.Contains(Profiles(), profile) {
			return Report{}, fmt.Errorf("unknown profile %q: choose of %s", profile, strings.Join(Profiles(), ", "))
		}
	}
	m := &measurement{opts: opts}
	if m.onlyHosts() && (m.wants(profileInstall) || !m.wants(profileBurst, profileFairness)) {
		return Report{}, fmt.Errorf("the profiles %s measure nothing with sizes of hosts alone: leave out %s, or choose %s or %s",
			strings.Join(opts.Profiles, ", "), onlyHostsPrefix, profileBurst, profileFairness)
	}
	if err := m.dropState(); err != nil {
		return Report{}, err
	}
	err := m.measure(ctx)
	report := newReport(m.results)
	return report, errors.Join(err, report.write(opts), report.problem())
}

func (m *measurement) measure(ctx context.Context) error {
	if m.wants(hubProfiles()...) {
		if err := m.measureHub(ctx); err != nil {
			return err
		}
	}
	if m.wants(profileInstall) {
		for _, size := range m.opts.Sizes.Clusters {
			if err := m.measureInstalls(ctx, size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *measurement) measureHub(ctx context.Context) (err error) {
	h, err := startHub(ctx, m.opts.Progress)
	if err != nil {
		return err
	}
	defer func() { err = m.end(ctx, h, hubName, h.end, err) }()
	if m.wants(profileIdle, profileRestart, profileStorm, profileResync, profileFailover) && !m.onlyHosts() {
		for _, size := range m.opts.Sizes.Clusters {
			if err := m.measureClusters(ctx, h, size); err != nil {
				return err
			}
		}
		if err := h.erase(ctx); err != nil {
			return err
		}
	}
	for _, perHosts := range []struct {
		profile string
		measure func(context.Context, *hub, int) error
	}{{profileBurst, m.measureHosts}, {profileFairness, m.measureFairness}} {
		if !m.wants(perHosts.profile) {
			continue
		}
		for _, size := range m.opts.Sizes.Hosts {
			if err := perHosts.measure(ctx, h, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyHosts reports whether no size of clusters was given.
func (m *measurement) onlyHosts() bool { return len(m.opts.Sizes.Clusters) == 0 }
