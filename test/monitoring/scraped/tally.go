// SPDX-License-Identifier: Apache-2.0

package scraped

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tally counts what happens to objects as somebody sees it who watches the API server. The managers have to have counted the same.
type Tally struct {
	mu sync.Mutex
	// last is what was seen of an object before, by what is looked at, and counts are by metric and by values of its labels.
	last   map[seen]string
	counts map[string]map[string]float64
}

type seen struct {
	object types.UID
	what   string
}

// NewTally has counted nothing.
func NewTally() *Tally {
	return &Tally{last: map[seen]string{}, counts: map[string]map[string]float64{}}
}

// Seeing is for what watches: one object at a time is looked at, and none while somebody reads the tally. Only look calls Was and Count.
func (t *Tally) Seeing(look func(client.Object)) func(client.Object) {
	return func(object client.Object) {
		t.mu.Lock()
		defer t.mu.Unlock()
		look(object)
	}
}

// Was notes what something of an object is now, and returns what it was when it was looked at before; empty at first.
func (t *Tally) Was(object client.Object, what, now string) string {
	key := seen{object.GetUID(), what}
	was := t.last[key]
	t.last[key] = now
	return was
}

// Count counts one more of a metric, with values of labels as in Values.
func (t *Tally) Count(metric string, values ...string) {
	if t.counts[metric] == nil {
		t.counts[metric] = map[string]float64{}
	}
	t.counts[metric][strings.Join(values, ",")]++
}

// Values is a copy of what was counted of a metric until now, as Metrics.Values has it.
func (t *Tally) Values(metric string) map[string]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	values := map[string]float64{}
	maps.Copy(values, t.counts[metric])
	return values
}
