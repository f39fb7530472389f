// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"time"
)

// Stats says how long the Machines of a role took for each phase, and from their creation to Ready.
type Stats struct {
	Role     string
	Machines int
	Rows     []StatsRow
}

// StatsRow is one statistic, such as the median.
type StatsRow struct {
	Name string
	// Phases has a duration for each phase, in their order; nil when no Machine has both ends of it.
	Phases []*time.Duration
	// Total is from the creation to Ready; nil when no Machine is.
	Total *time.Duration
}

// percentile is a statistic with its name. The largest value is the 100th.
var percentiles = []struct {
	name string
	part float64
}{{"median", 0.5}, {"95 %", 0.95}, {"longest", 1}}

// statsOf has no role with a single Machine, of which the table of Machines says the same.
func statsOf(waves []Wave) []Stats {
	var roles []string
	lines := map[string][]*Line{}
	for _, wave := range waves {
		for _, group := range wave.Groups {
			if lines[group.Role] == nil {
				roles = append(roles, group.Role)
			}
			lines[group.Role] = append(lines[group.Role], group.Lines...)
		}
	}
	var all []Stats
	for _, role := range roles {
		if len(lines[role]) > 1 {
			all = append(all, statsOfRole(role, lines[role]))
		}
	}
	return all
}

func statsOfRole(role string, lines []*Line) Stats {
	byPhase, totals := map[Phase][]time.Duration{}, []time.Duration{}
	for _, line := range lines {
		for _, segment := range line.Segments {
			// The time of several phases is that of none.
			if len(segment.Also) == 0 {
				byPhase[segment.Phase] = append(byPhase[segment.Phase], segment.Duration())
			}
			if segment.Phase == Ready {
				totals = append(totals, line.Total())
			}
		}
	}
	stats := Stats{Role: role, Machines: len(lines)}
	for _, p := range percentiles {
		row := StatsRow{Name: p.name, Total: percentile(totals, p.part)}
		for _, phase := range phases {
			row.Phases = append(row.Phases, percentile(byPhase[phase], p.part))
		}
		stats.Rows = append(stats.Rows, row)
	}
	return stats
}

// percentile is the smallest value that this part of the values does not exceed.
func percentile(values []time.Duration, part float64) *time.Duration {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	return &sorted[int(math.Ceil(part*float64(len(sorted))))-1]
}
