// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fair"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

const (
	// workers is the number of ignitions that are fetched at a time, and places that of those for configs of one namespace, which is what
	// the queue gives to a namespace when no other has any.
	workers = 8
	places  = workers / 2
	// patience is for how long a pass waits for an ignition. A server that works answers within it, and the pass goes on; passes that wait
	// are no more than the places of a namespace.
	patience = 500 * time.Millisecond
	// retry is how long a fetch that has failed is not repeated: any host or Agent of the namespace may trigger a pass.
	retry = 10 * time.Second
	// kept is the number of ignitions that are kept until they are asked for: each may have a MiB.
	kept = 32
)

// ErrPending says that an ignition is being fetched.
var ErrPending = errors.New("the discovery ignition is being fetched")

// Source fetches discovery ignitions, while its caller waits.
type Source interface {
	// Fetch returns what the URL serves, byte for byte, after a check that it is ignition. An *Error says what is wrong in words that do not
	// change from one attempt to the next.
	Fetch(ctx context.Context, url string) ([]byte, error)
}

// Fetches fetches ignitions for configs, beside the passes of their controller: a server that never answers would hold up those of other
// configs. It is a runnable of the manager, and runs where the controller does.
type Fetches struct {
	source   Source
	clock    clock.PassiveClock
	patience time.Duration

	queue  *fair.Queue[types.NamespacedName]
	events chan event.GenericEvent

	mu    sync.Mutex
	known map[types.NamespacedName]*fetch
	// served are the configs whose ignition was fetched and not asked for yet, the oldest first.
	served []types.NamespacedName
	// unfinished is how many fetches of each namespace have not come to an end.
	unfinished map[string]int
}

// fetch is what was fetched for a config, or is about to be.
type fetch struct {
	url string
	// origin is the pass that has asked for it.
	origin tracing.Origin
	// ended is closed when the fetch has come to its end, at the time at.
	ended chan struct{}
	at    time.Time
	data  []byte
	// err is why the fetch has failed, or, until it has come to its end, why the one before it has.
	err error
	// awaited is true while a pass waits for the end, which needs no event then.
	awaited bool
}

func (f *fetch) finished() bool { return !f.at.IsZero() }

// NewFetches returns Fetches that fetch once they are started.
func NewFetches(source Source) *Fetches {
	return &Fetches{
		source: source, clock: clock.RealClock{}, patience: patience,
		queue: fair.NewNamedQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retry, retry), workers), // No fetch is repeated by itself.
		events: make(chan event.GenericEvent), known: map[types.NamespacedName]*fetch{}, unfinished: map[string]int{},
	}
}

// Events tell of configs for which there is news.
func (f *Fetches) Events() <-chan event.GenericEvent { return f.events }

// Lookup returns what was fetched for a config, once. Until then it returns ErrPending, or what the last attempt came to, and the config
// gets an event. A fetch that has failed begins again with the first Lookup after 10 s.
func (f *Fetches) Lookup(ctx context.Context, config types.NamespacedName, url string) ([]byte, error) {
	current, waits := f.begin(ctx, config, url)
	if waits {
		select {
		case <-current.ended:
		case <-time.After(f.patience):
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if waits {
		current.awaited = false
	}
	switch {
	case !current.finished() && current.err == nil:
		return nil, ErrPending
	case current.finished() && current.err == nil:
		f.drop(config)
		return current.data, nil
	default:
		return nil, current.err
	}
}

// begin returns the fetch of a config, which it makes unless there is one, and reports whether a pass may wait for it.
func (f *Fetches) begin(ctx context.Context, config types.NamespacedName, url string) (current *fetch, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.known[config]
	if last != nil && last.url == url && (!last.finished() || last.err == nil || f.clock.Since(last.at) < retry) {
		return last, false
	}
	next := &fetch{url: url, origin: tracing.From(ctx), ended: make(chan struct{})}
	if last != nil && last.url == url {
		next.err = last.err
	}
	f.drop(config)
	f.known[config] = next
	f.unfinished[config.Namespace]++
	f.queue.Add(config)
	next.awaited = next.err == nil && f.unfinished[config.Namespace] <= places
	return next, next.awaited
}

// Forget drops what was fetched for a config that is gone.
func (f *Fetches) Forget(config types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(config)
}

// drop is called under the lock.
func (f *Fetches) drop(config types.NamespacedName) {
	if last := f.known[config]; last != nil && !last.finished() {
		f.count(config.Namespace)
	}
	delete(f.known, config)
	f.served = slices.DeleteFunc(f.served, func(one types.NamespacedName) bool { return one == config })
}

// count is called under the lock when a fetch has come to its end.
func (f *Fetches) count(namespace string) {
	if f.unfinished[namespace]--; f.unfinished[namespace] <= 0 {
		delete(f.unfinished, namespace)
	}
}

// Start fetches until the context ends.
func (f *Fetches) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for f.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	f.queue.ShutDown()
	running.Wait()
	return nil
}

func (f *Fetches) next(ctx context.Context) bool {
	config, shutdown := f.queue.Get()
	if shutdown {
		return false
	}
	defer f.queue.Done(config)
	if ctx.Err() != nil {
		return false // A queue that is shut down hands out what is left in it.
	}
	wanted := f.wanted(config)
	if wanted == nil {
		return true
	}
	data, err := f.traced(wanted.origin.Into(ctx), wanted.url)
	if f.end(config, wanted, data, err) {
		f.send(ctx, config)
	}
	return true
}

func (f *Fetches) traced(ctx context.Context, url string) (_ []byte, err error) {
	ctx, call := tracing.Begin(ctx, "fetch discovery ignition")
	defer func() { call.End(err) }()
	return f.source.Fetch(ctx, url)
}

// wanted is the fetch of a config that has not come to its end.
func (f *Fetches) wanted(config types.NamespacedName) *fetch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if current := f.known[config]; current != nil && !current.finished() {
		return current
	}
	return nil
}

// end keeps what a fetch came to, unless the config wants something else by now, and reports whether it is news. Of those that nobody has
// asked for, the oldest is fetched again when it is.
func (f *Fetches) end(config types.NamespacedName, current *fetch, data []byte, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[config] != current {
		return false // Whoever asked for something else has put the config into the queue again.
	}
	news := !current.awaited && (err == nil || current.err == nil || message(current.err) != message(err))
	current.data, current.err, current.at = data, err, f.clock.Now()
	close(current.ended)
	f.count(config.Namespace)
	if err != nil {
		return news
	}
	f.served = append(f.served, config)
	if len(f.served) > kept {
		f.drop(f.served[0])
	}
	return news
}

// message is what users are told of an error.
func message(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

// send wakes the controller.
func (f *Fetches) send(ctx context.Context, config types.NamespacedName) {
	of := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name}}
	select {
	case f.events <- event.GenericEvent{Object: of}:
	case <-ctx.Done():
	}
}
