// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

const (
	// requestTimeout bounds a request that is no watch, as Cluster API's ClusterCache does.
	requestTimeout = 10 * time.Second
	// askingUnused is how long the transport for large answers is kept after its last use, since passes ask one thing after the other. A
	// manager that starts asks all clusters soon after each other: the longer it keeps these connections, the more are open at a time, and
	// Go does not give back the memory that the most of them took.
	askingUnused = 5 * time.Second
	// restingUnused is how long the TCP connection of watches and probes is kept after its last use. It is longer than the time between two
	// probes, so that a cluster of which nothing is watched is probed by the same connection each time.
	restingUnused = 3 * probeInterval
)

// connection is what the manager holds of a cluster that answers. It knows no kinds but those of the manager: it asks the cluster for none.
type connection struct {
	kinds      []*kind
	serializer runtime.NegotiatedSerializer
	// config is the configuration of the kubeconfig that the connection was made with.
	config *rest.Config
	// origin is what that kubeconfig was. Only the pass that probes the connection uses it.
	origin origin
	// rest is for watches and probes, whose answers are small.
	rest rest.Interface
	// ends when the connection is closed, and all watches with it.
	ends  context.Context //nolint:containedctx // Watches are added later than the connection is made.
	close context.CancelFunc

	mu sync.Mutex
	// asking is the transport for all other requests; nil when it was not used for askingUnused. unused is the timer that ends it.
	asking  http.RoundTripper
	unused  *time.Timer
	stores  map[*kind]*store
	watches map[string]bool
	// looks counts the probes that looked at a kind.
	looks int
}

// asks is a client for requests with large answers. It has a TCP connection of its own, which is closed when it is not used any more,
// because a connection keeps buffers as large as the largest answer was: the one of watches and probes, which is always open, stays small.
func (c *connection) asks() (rest.Interface, error) {
	transport, err := c.asksBy()
	if err != nil {
		return nil, err
	}
	return c.restBy(transport)
}

// asksBy is the transport of that connection.
func (c *connection) asksBy() (http.RoundTripper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking != nil {
		c.unused.Reset(askingUnused)
		return c.asking, nil
	}
	transport, err := transportOf(c.config, askingUnused)
	if err != nil {
		return nil, err
	}
	asking := newFirstAlone(transport, firstPatience)
	c.asking = asking
	c.unused = time.AfterFunc(askingUnused, func() { c.drop(asking) })
	return asking, nil
}

// drop closes the connections of a transport for large answers, and forgets the transport, which would keep closed connections in memory. A
// request that is still under way comes to its end, and its connection closes afterwards.
func (c *connection) drop(asking http.RoundTripper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking == asking {
		c.asking, c.unused = nil, nil
	}
	utilnet.CloseIdleConnectionsFor(asking)
}

// restBy makes a client without a time-out: each request has a bound of its own.
func (c *connection) restBy(transport http.RoundTripper) (rest.Interface, error) {
	config := rest.CopyConfig(c.config)
	config.Timeout = 0
	config.NegotiatedSerializer = c.serializer
	made, err := rest.UnversionedRESTClientForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return made, nil
}

// subscribe adds a watch, unless one of its name is there.
func (c *connection) subscribe(w clustercache.Watcher) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := subscriptions{connection: c}
	if !c.watches[w.Name()] {
		if err := w.Watch(to); err != nil {
			return fmt.Errorf("add the watch %s: %w", w.Name(), err)
		}
		c.watches[w.Name()] = true
	}
	own, ok := w.(*Watcher)
	if !ok {
		return nil
	}
	objects, err := to.store(own.kind)
	if err == nil {
		objects.want(own.need)
	}
	return err
}

// subscriptions are what a Watcher of this package sees of a connection whose lock is held.
type subscriptions struct {
	cache.Cache // Nothing of it can be used: there is no informer.

	connection *connection
}

// store is the store of a kind.
func (s subscriptions) store(o client.Object) (*store, error) {
	c := s.connection
	for _, k := range c.kinds {
		if !k.is(o) {
			continue
		}
		if c.stores[k] == nil {
			c.stores[k] = newStore(k, c)
		}
		return c.stores[k], nil
	}
	return nil, fmt.Errorf("%T is no kind that can be watched", o)
}

// Watcher watches the objects of a kind in an installed cluster.
type Watcher struct {
	name       string
	kind       client.Object
	need       need
	controller clustercache.SourceWatcher[reconcile.Request]
	requests   func(client.Object) []reconcile.Request
}

var _ clustercache.Watcher = &Watcher{}

// NewWatcher makes a watch: requests says what a changed object wakes in the controller, and what wakes it when the objects have been read
// for the first time; then the object is nil. Only one watch of a name is added to a connection.
func NewWatcher(
	name string, kind client.Object, controller clustercache.SourceWatcher[reconcile.Request],
	requests func(client.Object) []reconcile.Request,
) *Watcher {
	return &Watcher{name: name, kind: kind, controller: controller, requests: requests}
}

// Resting ends the need for a watch that is always open. If somebody waits for a change of the kind, a watch is open for watchLease from
// each such call on. If nobody does, the probes find changes, and the objects may be as old as it takes all kinds to have their turn.
func (w *Watcher) Resting(waits bool) *Watcher {
	w.need = needsNothing
	if waits {
		w.need = needsWatch
	}
	return w
}

// Name is the name of the watch.
func (w *Watcher) Name() string { return w.name }

// Object is an object of the kind.
func (w *Watcher) Object() client.Object { return w.kind }

// Watch adds the watch to a connection of this package.
func (w *Watcher) Watch(to cache.Cache) error {
	s, ok := to.(subscriptions)
	if !ok {
		return errors.New("this is no connection of the manager")
	}
	objects, err := s.store(w.kind)
	if err != nil {
		return err
	}
	return w.controller.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		objects.tell(func(o client.Object) {
			for _, request := range w.requests(o) {
				queue.Add(request)
			}
		})
		return nil
	}))
}

// Reader reads what a connection watches.
type Reader struct{ connection *connection }

var _ client.Reader = Reader{}

// Ready is nil when the objects of a kind can be read, and ErrNotRead while they have not been read yet.
func (r Reader) Ready(ctx context.Context, o runtime.Object) error {
	_, err := r.ready(ctx, o)
	return err
}

func (r Reader) ready(ctx context.Context, o runtime.Object) (*store, error) {
	c := r.connection
	c.mu.Lock()
	var found *store
	for k, s := range c.stores {
		if k.is(o) {
			found = s
		}
	}
	c.mu.Unlock()
	if found == nil {
		return nil, fmt.Errorf("%T is not watched", o)
	}
	return found, found.ready(ctx)
}

// Get reads an object of a kind that is watched.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s, err := r.ready(ctx, o)
	if err != nil {
		return err
	}
	found := s.get(key)
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: s.kind.gvk.Group, Resource: s.kind.gvk.Kind}, key.String())
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// List reads all objects of a kind that is watched.
func (r Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if len(opts) > 0 {
		return errors.New("what is watched of an installed cluster cannot be selected")
	}
	s, err := r.ready(ctx, list)
	if err != nil {
		return err
	}
	return meta.SetList(list, s.all())
}
