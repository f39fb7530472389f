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

// world is a Queue whose workers and clock a test plays.
type world struct {
	*Queue[types.NamespacedName]

	g   *WithT
	now time.Time
}

func newWorld(t *testing.T, workers int) *world {
	t.Helper()
	w := &world{g: NewWithT(t), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.Queue = NewNamedQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Hour, time.Hour), workers)
	w.Queue.now, w.swept = func() time.Time { return w.now }, w.now
	t.Cleanup(w.ShutDown)
	return w
}

func of(namespace string, i int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("%04d", i)}
}

// add adds so many keys of a namespace.
func (w *world) add(namespace string, keys int) {
	for i := range keys {
		w.Add(of(namespace, i))
	}
}

// all hands out all keys that may have a worker now, as Get does, which would wait for more.
func (w *world) all() (keys []types.NamespacedName) {
	for w.Len() > 0 {
		key, _ := w.TypedRateLimitingInterface.Get()
		if w.take(key) {
			keys = append(keys, key)
		} else {
			w.TypedRateLimitingInterface.Done(key)
		}
	}
	return keys
}

// end ends the work on keys after a time.
func (w *world) end(after time.Duration, keys ...types.NamespacedName) {
	w.now = w.now.Add(after)
	for _, key := range keys {
		w.Queue.Done(key)
	}
}

// number is how many of the keys are of a namespace.
func number(keys []types.NamespacedName, namespace string) (n int) {
	for _, key := range keys {
		if key.Namespace == namespace {
			n++
		}
	}
	return n
}

// TestOneNamespaceTakesHalf: a key of another namespace is next, however many of a namespace that has its share are before it; and those
// come in their order, each once, as workers become free.
func TestOneNamespaceTakesHalf(t *testing.T) {
	w := newWorld(t, 4)
	w.add("bad", 1000)
	w.add("good", 1)
	w.g.Expect(w.all()).To(Equal([]types.NamespacedName{of("bad", 0), of("bad", 1), of("good", 0)}))
	w.Add(of("bad", 5)) // It waits already.
	w.g.Expect(w.all()).To(BeEmpty())
	w.end(0, of("good", 0))
	for i := range 998 {
		w.end(0, of("bad", i))
		w.g.Expect(w.all()).To(Equal([]types.NamespacedName{of("bad", i+2)}))
	}
	w.end(0, of("bad", 998), of("bad", 999))
	w.g.Expect(w.all()).To(BeEmpty(), "what was added while it waited is handed out once")
	w.empty()
}

// empty expects that nothing is left of keys that were not slow.
func (w *world) empty() {
	w.g.Expect(w.Len()).To(BeZero())
	w.g.Expect(w.taken).To(BeEmpty())
	w.g.Expect(w.total).To(BeEmpty())
	w.g.Expect(w.slow).To(BeEmpty())
	w.g.Expect(w.slowTaken).To(BeZero())
	w.g.Expect(w.parked).To(BeEmpty())
	for _, l := range []*line[types.NamespacedName]{w.slowLine, w.quickLine} {
		w.g.Expect(l.turns).To(BeEmpty())
		w.g.Expect(l.keys).To(BeEmpty())
	}
}

// TestNamespacesShare: a namespace gets workers while it has fewer than are free, so that some are left by several that take all they get.
func TestNamespacesShare(t *testing.T) {
	w := newWorld(t, 100)
	for _, namespace := range []string{"a", "b", "c", "d"} {
		w.add(namespace, 200)
	}
	w.add("good", 1)
	keys := w.all()
	w.g.Expect([]int{number(keys, "a"), number(keys, "b"), number(keys, "c"), number(keys, "d"), number(keys, "good")}).To(
		Equal([]int{50, 25, 13, 6, 1}))
}

// TestSlowKeysTakeHalf: keys that were slow take half of the workers at most, and a quarter in one namespace, in whose share others of it
// find a place; what is fast for once is still slow, for ten minutes.
func TestSlowKeysTakeHalf(t *testing.T) {
	w := newWorld(t, 20)
	dark := []string{"a", "b", "c"}
	for _, namespace := range dark {
		w.add(namespace, 50)
	}
	for keys := w.all(); len(keys) > 0; keys = w.all() {
		w.end(SlowPass, keys...)
	}
	w.g.Expect(w.found).To(HaveLen(150))
	w.empty()
	for _, namespace := range dark {
		w.add(namespace, 50)
		w.Add(of(namespace, 51)) // This one was never slow.
	}
	keys := w.all()
	w.g.Expect(keys).To(ContainElements(of("a", 51), of("b", 51), of("c", 51)))
	w.g.Expect(w.slow).To(Equal(map[string]int{"a": 5, "b": 5}))
	w.g.Expect(keys).To(HaveLen(13), "seven are left to others")

	w.end(SlowPass/2, of("a", 51), of("b", 51), of("c", 51), of("a", 0))
	w.g.Expect(w.all()).To(Equal([]types.NamespacedName{of("a", 5)}), "of the slow ones that wait, the first in the next turn")
	w.end(0, of("b", 0))
	w.g.Expect(w.all()).To(Equal([]types.NamespacedName{of("b", 5)}))
	w.end(0, of("a", 5))
	w.g.Expect(w.all()).To(Equal([]types.NamespacedName{of("c", 0)}), "its turn is before a second one of the others")
	w.Add(of("a", 0))
	w.g.Expect(w.all()).To(BeEmpty(), "it is still slow")
}

// TestNotSlowForEver: a key that has not been slow for ten minutes is like any other, and nothing is kept of it.
func TestNotSlowForEver(t *testing.T) {
	w := newWorld(t, 8)
	w.add("a", 4)
	w.end(SlowPass, w.all()...)
	w.add("a", 4)
	keys := w.all()
	w.g.Expect(keys).To(HaveLen(2))
	w.end(0, keys...)
	w.end(0, w.all()...)
	w.now = w.now.Add(Remembered)
	w.add("a", 4)
	w.g.Expect(w.all()).To(HaveLen(4))
	w.end(SlowPass, of("a", 0))
	w.g.Expect(w.found).To(HaveLen(1))
}

// TestAddedWhileItHasAWorker: a key that is added while it is worked on comes again afterwards, as in every queue.
func TestAddedWhileItHasAWorker(t *testing.T) {
	w := newWorld(t, 1)
	w.add("a", 2)
	got, _ := w.Get()
	w.Add(got)
	w.end(0, got)
	w.g.Expect(w.all()).To(Equal([]types.NamespacedName{of("a", 1)}))
	w.end(0, of("a", 1))
	w.g.Expect(w.all()).To(Equal([]types.NamespacedName{got}))
	w.ShutDown()
	_, shutdown := w.Get()
	w.g.Expect(shutdown).To(BeTrue())
}
