// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

func newQueue(places int) *Queue {
	return NewQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Hour, time.Hour), places)
}

// TestOneNamespaceTakesItsPlacesOnly: a key of another namespace is next, however many of a namespace that has no place are before it; and
// those come in their order, each once, as places become free.
func TestOneNamespaceTakesItsPlacesOnly(t *testing.T) {
	g := NewWithT(t)
	q := newQueue(2)
	defer q.ShutDown()
	bad := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "bad", Name: fmt.Sprintf("%04d", i)}
	}
	good := types.NamespacedName{Namespace: "good", Name: "one"}
	next := func() types.NamespacedName {
		key, shutdown := q.Get()
		g.Expect(shutdown).To(BeFalse())
		return key
	}
	for i := range 1000 {
		q.Add(bad(i))
	}
	q.Add(good)
	g.Expect([]types.NamespacedName{next(), next(), next()}).To(Equal([]types.NamespacedName{bad(0), bad(1), good}))
	other := types.NamespacedName{Namespace: "good", Name: "other"}
	q.Add(bad(5)) // It waits already.
	q.Add(other)
	g.Expect(next()).To(Equal(other))
	for i := range 998 {
		q.Done(bad(i))
		g.Expect(next()).To(Equal(bad(i + 2)))
	}
	q.Done(bad(998))
	q.Done(bad(999))
	q.Done(good)
	q.Done(other)
	g.Expect(q.Len()).To(BeZero(), "what was added while it waited is handed out once")
	g.Expect(q.taken).To(BeEmpty())
	g.Expect(q.waiting).To(BeEmpty())
}

// TestAddedWhileItHasAPlace: a key that is added while it is worked on comes again afterwards, as in every queue.
func TestAddedWhileItHasAPlace(t *testing.T) {
	g := NewWithT(t)
	q := newQueue(1)
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	q.Add(key)
	got, _ := q.Get()
	q.Add(key)
	q.Done(got)
	again, _ := q.Get()
	g.Expect(again).To(Equal(key))
	q.Done(again)
	q.ShutDown()
	_, shutdown := q.Get()
	g.Expect(shutdown).To(BeTrue())
}
