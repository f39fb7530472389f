// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
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

// TestTroubles: whatever the rest of the world does wrong, and whenever, a story ends as without that, and with few more writes. A host that
// cannot register for an hour is power-cycled meanwhile (DESIGN D35).
func TestTroubles(t *testing.T) {
	for _, name := range []string{"install", "replacement", "an Agent is lost", "deletion"} {
		for trouble, begin := range troubles {
			t.Run(name+"/"+trouble, func(t *testing.T) {
				t.Parallel()
				for from := 0; from < 20; from += stride(7) {
					t.Run(fmt.Sprint(from), func(t *testing.T) {
						inject.Alike(t, stories[name].inTrouble(nil), stories[name].inTrouble(func(w *world) { begin(w, w.steps+from) }))
					})
				}
			})
		}
	}
}

// inTrouble tells the story in a world with a trouble.
func (s story) inTrouble(begin func(*world)) func(*testing.T, *inject.Calls) inject.Ending {
	troubled := s
	troubled.begin = func(t *testing.T) *world {
		t.Helper()
		w := s.begin(t)
		if w.happens = map[int]func(){}; begin != nil {
			begin(w)
		}
		return w
	}
	return func(t *testing.T, calls *inject.Calls) inject.Ending {
		t.Helper()
		ending := troubled.tell(t, calls)
		ending.Others = ""
		return ending
	}
}
