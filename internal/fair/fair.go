// SPDX-License-Identifier: Apache-2.0

// Package fair has the queue of what is asked of servers that are not the manager's own, such as registries: any tenant can name one that
// never answers, and a thousand of those must not take the places of everybody else.
package fair

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// Queue hands out keys, but no more than a number of each namespace at a time. The others of that namespace wait in their order, and those
// of other namespaces pass them by. The keys of a namespace that are handed out are fewer than the workers, so that one is always free.
type Queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]

	places int

	mu sync.Mutex
	// taken are the places that each namespace has taken, and waiting its keys for which there was none.
	taken   map[string]int
	waiting map[string][]types.NamespacedName
}

// NewQueue returns a Queue of which each namespace has this many places.
func NewQueue(limiter workqueue.TypedRateLimiter[types.NamespacedName], places int) *Queue {
	return &Queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(limiter), places: places,
		taken: map[string]int{}, waiting: map[string][]types.NamespacedName{},
	}
}

// Get returns the next key whose namespace has a place, which it takes until Done.
func (q *Queue) Get() (types.NamespacedName, bool) {
	for {
		key, shutdown := q.TypedRateLimitingInterface.Get()
		if shutdown || q.take(key) {
			return key, shutdown
		}
		q.TypedRateLimitingInterface.Done(key)
	}
}

// Done gives the place of a key to the next one of its namespace.
func (q *Queue) Done(key types.NamespacedName) {
	q.TypedRateLimitingInterface.Done(key)
	if next, ok := q.leave(key.Namespace); ok {
		q.Add(next)
	}
}

func (q *Queue) take(key types.NamespacedName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken[key.Namespace] < q.places {
		q.taken[key.Namespace]++
		return true
	}
	if !slices.Contains(q.waiting[key.Namespace], key) {
		q.waiting[key.Namespace] = append(q.waiting[key.Namespace], key)
	}
	return false
}

func (q *Queue) leave(namespace string) (next types.NamespacedName, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken[namespace]--; q.taken[namespace] == 0 {
		delete(q.taken, namespace)
	}
	waiting := q.waiting[namespace]
	if len(waiting) == 0 {
		return next, false
	}
	if len(waiting) == 1 {
		delete(q.waiting, namespace)
	} else {
		q.waiting[namespace] = waiting[1:]
	}
	return waiting[0], true
}
