// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// resting is a cluster whose ConfigMaps a and ignored nobody waits for, and who is woken all the same.
type restingCluster struct {
	*api
	woken

	c   *Connections
	now *testClock
}

func newResting(t *testing.T) *restingCluster {
	t.Helper()
	g := NewWithT(t)
	r := &restingCluster{api: newAPI(t), woken: newWoken()}
	r.set("a", "1")
	r.set("ignored", "1")
	r.c = connections(t, r.api, nil)
	r.now = r.c.clock()
	r.c.pass(t)
	r.watch(t, false)
	g.Expect([]string{r.next(t), r.next(t)}).To(ConsistOf("a", "all"))
	return r
}

func (r *restingCluster) watch(t *testing.T, waits bool) {
	t.Helper()
	watcher := NewWatcher("configmaps", &corev1.ConfigMap{}, r.woken, named).Resting(waits)
	NewWithT(t).Expect(r.c.Watch(t.Context(), key, watcher)).To(Succeed())
}

// probe lets a probe be due, and returns how many failed in a row.
func (r *restingCluster) probe(t *testing.T) int {
	t.Helper()
	r.now.pass(probeInterval)
	r.c.pass(t)
	return r.c.GetHealthCheckingState(t.Context(), key).ConsecutiveFailures
}

// settles waits until nothing is read.
func (r *restingCluster) settles(t *testing.T) {
	t.Helper()
	s := r.store(t)
	NewWithT(t).Eventually(func() bool { rests, _ := s.atRest(); return rests }, limit).Should(BeTrue())
}

// store is that of the ConfigMaps.
func (r *restingCluster) store(t *testing.T) *store {
	t.Helper()
	made, err := r.c.connected(key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return made.stores[made.kinds[0]]
}

// TestResting: while nobody waits for a change of a kind there is no watch. The probes look at it, and have it read again when it has
// changed.
func TestResting(t *testing.T) {
	g := NewWithT(t)
	r := newResting(t)
	g.Expect(r.probe(t)).To(BeZero())
	g.Expect(r.looks).To(Equal([]string{"resourceVersion=0"}), "the memory of the API server is good enough")
	g.Expect(r.read()).To(Equal(1))
	r.set("a", "2")
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("1"), "nobody tells")
	r.probe(t)
	g.Expect(r.next(t)).To(Equal("a"))
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("2"))
	r.settles(t)
	r.set("ignored", "2")
	r.probe(t)
	g.Eventually(r.read, limit).Should(Equal(3))
	r.settles(t)
	r.remove("a")
	r.probe(t)
	g.Expect(r.next(t)).To(Equal("a"))
	_, err := value(t.Context(), r.c, "a")
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	g.Expect(err).To(HaveOccurred())
	r.settles(t)
	r.probe(t)
	r.settles(t)
	g.Expect(r.read()).To(Equal(4), "it is gone as before")
	g.Expect(r.queries[0]).To(Equal("resourceVersion=0"))
	g.Expect(r.queries[1:]).To(HaveEach(""), "the memory of another API server may be older than what is known")
	g.Expect(r.Len()).To(BeZero())
	g.Expect(r.open()).To(BeZero())
}

// TestWaiting: a Watcher that waits reads the ConfigMaps as they are now, and the watch tells it of each change. The watch ends once no
// Watcher has waited for watchLease, and the next one that waits opens it again.
func TestWaiting(t *testing.T) {
	g := NewWithT(t)
	r := newResting(t)
	r.set("a", "2")
	r.watch(t, true)
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("2"), "what is old is read again first")
	g.Expect([]string{r.next(t), r.next(t)}).To(ConsistOf("a", "all"))
	g.Eventually(r.open, limit).Should(Equal(1))
	r.watch(t, true)
	r.watch(t, false)
	r.set("a", "3")
	g.Expect(r.next(t)).To(Equal("a"))
	g.Expect(r.looks).To(BeEmpty())
	g.Expect(r.probe(t)).To(BeZero())
	g.Expect(r.looks).To(BeEmpty(), "a watch tells")
	g.Expect(r.read()).To(Equal(2))

	s := r.store(t)
	s.mu.Lock()
	s.until = time.Now()
	s.mu.Unlock()
	g.Expect(s.rests()).To(BeTrue())
	r.api.end(expired)
	g.Eventually(r.open, limit).Should(BeZero())
	g.Eventually(func() int { r.probe(t); return len(r.looks) }, limit).Should(BeNumerically(">", 0))
	r.watch(t, true)
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("3"))
	g.Eventually(r.open, limit).Should(Equal(1))
}

// TestWaitingBehind: who waits while what a look has found is being read waits for that.
func TestWaitingBehind(t *testing.T) {
	g := NewWithT(t)
	r := newResting(t)
	held := make(chan struct{})
	r.set("a", "2")
	s := r.store(t)
	g.Expect(s.look(t.Context())).To(Succeed())
	r.settles(t)
	g.Expect(r.next(t)).To(Equal("a"))
	r.set("a", "3")
	s.mu.Lock()
	s.runs, s.behind = true, true // As look leaves it, before its goroutine has read anything.
	s.mu.Unlock()
	r.watch(t, true)
	go func() {
		<-held
		s.run(s.connection.ends)
	}()
	g.Expect(s.isKnown()).To(BeTrue())
	reader, err := r.c.GetReader(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	unread, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(reader.(Reader).Ready(unread, &corev1.ConfigMap{})).To(MatchError(ErrNotRead), "what is known is old")
	close(held)
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("3"))
}

// TestAlways: who does not say that nobody waits has a watch, whatever others say.
func TestAlways(t *testing.T) {
	g := NewWithT(t)
	r := newResting(t)
	late := newWoken()
	g.Expect(r.c.Watch(t.Context(), key, NewWatcher("late", &corev1.ConfigMap{}, late, named))).To(Succeed())
	g.Eventually(r.open, limit).Should(Equal(1))
	r.watch(t, false)
	g.Expect(r.store(t).rests()).To(BeFalse())
}

// TestLookThatFails: what a cluster says to a look is what it says to a probe, and what cannot be read again is tried with the next one.
func TestLookThatFails(t *testing.T) {
	g := NewWithT(t)
	r := newResting(t)
	r.set("a", "2")
	r.with(func() { r.broken = http.StatusInternalServerError })
	g.Expect(r.probe(t)).To(BeZero(), "it has answered")
	g.Eventually(r.read, limit).Should(Equal(2))
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("1"), "what was known stands")
	r.with(func() { r.broken = 0 })
	g.Expect(r.next(t)).To(Equal("a"), "it is tried again")
	r.settles(t)
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("2"))

	r.with(func() { r.missing = true })
	g.Expect(r.probe(t)).To(BeZero(), "a cluster that does not tell of one kind answers all the same")
	g.Expect(value(t.Context(), r.c, "a")).To(Equal("2"))
	_, changed := r.store(t).atRest()
	g.Expect(changed).To(BeTrue(), "the next probe looks again")
	r.with(func() { r.denied = true })
	r.probe(t)
	g.Expect(r.c.connected(key)).Error().To(MatchError(clustercache.ErrClusterNotConnected))
}

// TestTurns: kinds are looked at one after the other, none before it has been read, and all after a herald has changed.
func TestTurns(t *testing.T) {
	g := NewWithT(t)
	first, second, watched := &kind{}, &kind{}, &kind{Kind: Kind{Herald: true}}
	c := &connection{kinds: []*kind{watched, first, second}, stores: map[*kind]*store{}}
	turns := func() (kinds []*kind) {
		for _, s := range c.turn() {
			kinds = append(kinds, s.kind)
		}
		return kinds
	}
	g.Expect(turns()).To(BeEmpty())
	for _, k := range c.kinds {
		c.stores[k] = newStore(k, c)
		c.stores[k].note(nil)
	}
	c.stores[watched].always, c.stores[watched].runs = true, true
	c.stores[second].read = false
	g.Expect([][]*kind{turns(), turns()}).To(Equal([][]*kind{{first}, {first}}))
	c.stores[second].read = true
	one, other := turns(), turns()
	g.Expect(one).To(HaveLen(1))
	g.Expect(other).To(HaveLen(1))
	g.Expect(one[0]).NotTo(BeIdenticalTo(other[0]))
	c.stores[watched].apply("MODIFIED", &corev1.ConfigMap{})
	g.Expect(turns()).To(Equal([]*kind{first, second}))
	c.stores[first].changed = false
	g.Expect(turns()).To(Equal([]*kind{second}), "it has not been looked at yet")
	c.stores[second].changed = false
	g.Expect(turns()).To(HaveLen(1))
}
