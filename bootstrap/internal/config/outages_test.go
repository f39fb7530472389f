// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/capi-openshift/agent-providers/test/inject"
)

// outage is how long others are away: longer than a host may take to register.
const outage = 60

// troubles are what the rest of the world does wrong, from a step of a story on.
var troubles = map[string]func(w *world, from int){
	"assisted-service is gone for an hour": func(w *world, from int) {
		w.happens[from] = func() { w.serviceAway = true }
		w.happens[from+outage] = func() { w.serviceAway = false }
	},
	"Metal3 is gone for an hour": func(w *world, from int) {
		w.happens[from] = func() { w.metal3Away = true }
		w.happens[from+outage] = func() { w.metal3Away = false }
	},
	"events are an hour late": func(w *world, from int) {
		w.happens[from] = w.hub.Delay
		w.happens[from+outage] = w.hub.CatchUp
	},
	"the manager's clock is ahead":  func(w *world, from int) { w.happens[from] = func() { w.ahead = 10 * time.Minute } },
	"the manager's clock is behind": func(w *world, from int) { w.happens[from] = func() { w.ahead = -10 * time.Minute } },
}

// writesOfPowerCycle are those for a host that does not register in time: it is power-cycled, and given up, and says so each time.
const writesOfPowerCycle = 5

// cycles are the troubles in which hosts seem not to register for longer than they may take: they are power-cycled (DESIGN D35).
var cycles = []string{"assisted-service is gone for an hour", "events are an hour late"}

// TestTroubles: whatever the rest of the world does wrong, and whenever, a story ends as without that, and with few more writes.
func TestTroubles(t *testing.T) {
	for _, name := range []string{"install", "replacement", "an Agent is lost", "deletion"} {
		for _, cycled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, power-cycled %t", name, cycled), func(t *testing.T) {
				t.Parallel()
				inject.Alike(t, stories[name].inTrouble(cycled, nil), stories[name].inTroubles(cycled))
			})
		}
	}
}

// inTroubles tells the story with each trouble from several steps on.
func (s story) inTroubles(cycled bool) map[string]func(*testing.T, *inject.Calls) inject.Ending {
	worse := map[string]func(*testing.T, *inject.Calls) inject.Ending{}
	for trouble, begin := range troubles {
		for from := stride(8) - 1; from < 20 && slices.Contains(cycles, trouble) == cycled; from += 4 * stride(5) {
			worse[fmt.Sprintf("%s from step %d on", trouble, from)] = s.inTrouble(cycled, func(w *world) { begin(w, w.steps+from) })
		}
	}
	return worse
}

// inTrouble tells the story in a world with a trouble. How often hosts were booted counts unless they are power-cycled.
func (s story) inTrouble(cycled bool, begin func(*world)) func(*testing.T, *inject.Calls) inject.Ending {
	troubled := s
	hosts := 0
	troubled.begin = func(t *testing.T) *world {
		t.Helper()
		w := s.begin(t)
		hosts, w.happens = len(w.servers), map[int]func(){}
		if begin != nil {
			begin(w)
		}
		for step := range w.happens {
			w.until = max(w.until, step)
		}
		return w
	}
	return func(t *testing.T, calls *inject.Calls) inject.Ending {
		t.Helper()
		ending := troubled.tell(t, calls)
		if cycled {
			ending.Others, ending.MoreWrites = "", writesOfPowerCycle*hosts
		}
		return ending
	}
}
