// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Gap is how long somebody asked in vain, at the longest. An answer that comes late is no gap: a busy machine answers late.
type Gap struct {
	// Longest is the time between the first question in vain and the last of the same row.
	Longest time.Duration

	since time.Time
}

// Note notes when a question was asked, and whether it was answered.
func (g *Gap) Note(asked time.Time, answered bool) {
	switch {
	case answered:
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = asked
	}
	if !g.since.IsZero() {
		g.Longest = max(g.Longest, asked.Sub(g.since)+time.Millisecond) // A single question in vain counts too.
	}
}
