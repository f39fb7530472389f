// SPDX-License-Identifier: Apache-2.0

// Package fair has the queue of work that waits for servers that are not the manager's own, such as registries and the APIs of installed
// clusters: any tenant can name one that never answers, and a thousand of those must not take the workers of everybody else.
package fair

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

const (
	// SlowPass is how long a key is worked on that is slow from then on. Nothing but a server that does not answer takes so long; the
	// management cluster does when it is overloaded, and then half of the workers are enough for it.
	SlowPass = time.Second
	// Remembered is for how long a slow key stays slow. Much of what is done for a key needs no server and is fast, also while its server is
	// dark; the time is longer than what is between two attempts to reach one.
	Remembered = 10 * time.Minute
)

// Queue hands out keys to a number of workers. Each key that is handed out takes a worker until Done. Three rules leave workers to others,
// however many keys of a namespace there are and however long they take:
//
//   - A namespace gets a worker while it has fewer than are free. One namespace gets half of all; while others have some, it gets less.
//   - Slow keys get half of all workers at most: what is dark in many namespaces is waited for by those.
//   - Slow keys of one namespace get a quarter at most: they leave a part of the half to the other slow ones, which may answer again, and
//     of the namespace's share to its keys that are not slow.
//
// Keys that may not be handed out wait in their order, and those of other namespaces pass them by.
type Queue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]

	workers   int
	namespace func(K) string
	now       func() time.Time

	mu sync.Mutex
	// taken are the keys that have a worker; total is how many of them each namespace has, and slow how many of those are slow.
	taken map[K]turn
	total map[string]int
	slow  map[string]int
	// slowTaken is how many of all namespaces are slow.
	slowTaken int
	// found is when each slow key was found slow, and swept when those that are not slow any more were dropped.
	found map[K]time.Time
	swept time.Time
	// parked are the keys that wait, slow ones apart: they do not stand before others.
	parked              map[K]bool
	slowLine, quickLine *line[K]
}

// turn is the work on one key.
type turn struct {
	since time.Time
	slow  bool
}

// NewQueue returns a Queue for so many workers. The keys wait in the queue inside until a worker asks for one.
func NewQueue[K comparable](
	inside workqueue.TypedRateLimitingInterface[K], workers int, namespace func(K) string, now func() time.Time,
) *Queue[K] {
	return &Queue[K]{
		TypedRateLimitingInterface: inside, workers: max(1, workers), namespace: namespace, now: now,
		taken: map[K]turn{}, total: map[string]int{}, slow: map[string]int{}, found: map[K]time.Time{}, swept: now(),
		parked: map[K]bool{}, slowLine: newLine[K](), quickLine: newLine[K](),
	}
}

// NewNamedQueue returns a Queue of the names of objects.
func NewNamedQueue(limiter workqueue.TypedRateLimiter[types.NamespacedName], workers int) *Queue[types.NamespacedName] {
	of := func(key types.NamespacedName) string { return key.Namespace }
	return NewQueue(workqueue.NewTypedRateLimitingQueue(limiter), workers, of, time.Now)
}

// Get returns the next key that may have a worker, which it takes until Done.
func (q *Queue[K]) Get() (K, bool) {
	for {
		key, shutdown := q.TypedRateLimitingInterface.Get()
		if shutdown || q.take(key) {
			return key, shutdown
		}
		q.TypedRateLimitingInterface.Done(key)
	}
}

// Done gives the worker of a key to those that wait. The worker is free before the queue inside knows it: that one may hand out the key
// again at once.
func (q *Queue[K]) Done(key K) {
	next := q.leave(key)
	q.TypedRateLimitingInterface.Done(key)
	for _, one := range next {
		q.Add(one)
	}
}

// take takes a worker for a key, or lets the key wait. A key that has waited has its worker already.
func (q *Queue[K]) take(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if reserved, ok := q.taken[key]; ok {
		reserved.since = q.now()
		q.taken[key] = reserved
		return true
	}
	if q.parked[key] {
		return false
	}
	found, slow := q.found[key]
	slow = slow && q.now().Sub(found) < Remembered
	if q.may(q.namespace(key), slow) {
		q.occupy(key, slow)
		return true
	}
	q.parked[key] = true
	if slow {
		q.slowLine.push(q.namespace(key), key)
	} else {
		q.quickLine.push(q.namespace(key), key)
	}
	return false
}

// may reports whether a key of a namespace may have a worker. It is called under the lock, as all below.
func (q *Queue[K]) may(namespace string, slow bool) bool {
	if slow && (q.slowTaken >= max(1, q.workers/2) || q.slow[namespace] >= max(1, q.workers/4)) {
		return false
	}
	return q.total[namespace] < q.workers-len(q.taken)
}

func (q *Queue[K]) occupy(key K, slow bool) {
	namespace := q.namespace(key)
	q.taken[key] = turn{since: q.now(), slow: slow}
	q.total[namespace]++
	if slow {
		q.slow[namespace]++
		q.slowTaken++
	}
}

// leave frees the worker of a key, and returns those that have waited and have one now. Slow ones come first: they cannot take more than
// half of all, and would get none while others take all.
func (q *Queue[K]) leave(key K) []K {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace, had := q.namespace(key), q.taken[key]
	delete(q.taken, key)
	count(q.total, namespace)
	if had.slow {
		count(q.slow, namespace)
		q.slowTaken--
	}
	q.learn(key, had)
	return append(q.next(q.slowLine, true), q.next(q.quickLine, false)...)
}

// count takes one from a namespace.
func count(of map[string]int, namespace string) {
	if of[namespace]--; of[namespace] <= 0 {
		delete(of, namespace)
	}
}

// learn remembers that the work on a key was slow.
func (q *Queue[K]) learn(key K, had turn) {
	now := q.now()
	if now.Sub(had.since) < SlowPass {
		return
	}
	q.found[key] = now
	if now.Sub(q.swept) < Remembered {
		return
	}
	q.swept = now // Keys of objects that are gone stay no longer.
	maps.DeleteFunc(q.found, func(_ K, found time.Time) bool { return now.Sub(found) >= Remembered })
}

// next takes workers for keys that wait.
func (q *Queue[K]) next(waiting *line[K], slow bool) (next []K) {
	for {
		key, ok := waiting.pop(func(namespace string) bool { return q.may(namespace, slow) })
		if !ok {
			return next
		}
		delete(q.parked, key)
		q.occupy(key, slow)
		next = append(next, key)
	}
}
