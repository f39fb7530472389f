// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

const (
	// firstRetry is how long after a bind that has failed the next one is tried; each time it is twice as long, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
)

// retries knows when a Machine's host may be bound again after a bind that has failed. The queue's own times do not hold for that: each try
// records the disk on the config before and takes it back afterwards, and the events of both would bring the next try at once. Nothing is
// lost with it when the manager ends: what fails still is tried once more.
type retries struct {
	lock sync.Mutex
	next map[types.UID]retry
}

// retry is when the next bind is tried, and how long after the one before.
type retry struct {
	at    time.Time
	delay time.Duration
}

// left is how long no bind is tried for a Machine; 0 when one may be.
func (r *retries) left(machine types.UID, now time.Time) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	next, known := r.next[machine]
	if !known {
		return 0
	}
	return min(max(0, next.at.Sub(now)), next.delay) // Not for longer when somebody has put the clock back.
}

// note takes down what came of a bind. One that met an Agent which has changed is tried again when the cache has seen the change.
func (r *retries) note(machine types.UID, now time.Time, came kube.Outcome) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for other, next := range r.next {
		if now.Sub(next.at) > lastRetry { // Its Machine is gone, or its host is not to be bound any more.
			delete(r.next, other)
		}
	}
	if !came.Stops() || came.Outdated() {
		delete(r.next, machine)
		return
	}
	if r.next == nil {
		r.next = map[types.UID]retry{}
	}
	delay := min(max(firstRetry, 2*r.next[machine].delay), lastRetry)
	r.next[machine] = retry{at: now.Add(delay), delay: delay}
}

// holdBind keeps a decision from a bind whose time has not come. The conditions go on to say what came of the last one.
func (d *decision) holdBind(s *scope) {
	if d.bind == nil || s.held == 0 {
		return
	}
	if d.bind.claim != "" {
		d.recognized = fact.Fact{}
	}
	if reasonOf(s) == bootstrapv1.AgentNeedsAttentionReason {
		d.installed = fact.Fact{}
	}
	d.bind, d.disk, d.record, d.lookAgain = nil, "", "", s.held
}
