// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// watchLifetime is the shortest time for which a watch is asked for; the longest is twice that. client-go asks for the same.
	watchLifetime = 5 * time.Minute
	// watchSlack is how much longer than that a watch may be open.
	watchSlack = 30 * time.Second
	// shortWatch is how long a watch lasts that ended for a reason: its kind is read anew.
	shortWatch = time.Second
	// mostKept is how many objects of one kind are kept when they are read, as many as one answer may have.
	mostKept = 10_000
	// firstRead is how long a pass waits for the first answer about a kind.
	firstRead = 2 * time.Second
)

// retries are the pauses between attempts to read a kind.
var retries = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second}

// ErrNotRead says that the objects of a kind have not been read yet. Whoever watches them is woken when they are.
var ErrNotRead = errors.New("not read yet")

// store holds the objects of one kind in one cluster, and keeps them up to date with one watch, or by the probes while nobody waits for a
// change. The watch needs a goroutine that reads it, and another one of the HTTP connection.
type store struct {
	kind       *kind
	connection *connection

	mu      sync.RWMutex
	objects map[client.ObjectKey]client.Object
	// tried is closed when the objects were read for the first time, or could not be. read: all have been read once, and are kept up to date.
	// Before that, problem is why they could not be.
	tried   chan struct{}
	read    bool
	problem error
	// known: they have been read once, and are read from no server any more that may be behind.
	known bool
	// runs: a goroutine reads and watches. seen is a digest of the versions that all objects had when they were read last; zero after a watch.
	runs bool
	seen digest
	// behind: a look has found that they have changed, and they have not been read since.
	behind bool
	// changed: something has changed that the objects may have changed with.
	changed bool
	// always: a watch is to be open. Otherwise it is until then.
	always bool
	until  time.Time
	// told are woken by every change of an object, and by the first time that all are read, with nil.
	told []func(client.Object)
}

func newStore(k *kind, c *connection) *store {
	return &store{kind: k, connection: c, tried: make(chan struct{}), objects: map[client.ObjectKey]client.Object{}}
}

// run reads and watches until the context ends, or nobody needs the watch any more. It and what it calls are on the stack of each watch,
// which is to stay small.
func (s *store) run(ctx context.Context) {
	pause := retries.DelayWithReset(clock.RealClock{}, 2*time.Minute)
	for ctx.Err() == nil {
		err := s.follow(ctx)
		if ctx.Err() != nil || err == nil {
			return
		}
		ctrl.LoggerFrom(ctx).V(4).Info("A watch of an installed cluster ended", "resource", s.kind.path, "reason", err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(pause()):
		}
	}
}

// follow reads all objects and watches them until they have to be read anew, or nobody needs that any more, which is no error.
func (s *store) follow(ctx context.Context) error {
	objects, read, err := s.list(ctx)
	if err == nil {
		s.replace(objects, read.digest)
	}
	s.note(err)
	version := read.version
	for err == nil && !s.rests() {
		version, err = s.watch(ctx, version)
	}
	return err
}

// note remembers whether the first read succeeded, and tells who waits for it.
func (s *store) note(err error) {
	s.mu.Lock()
	first := !s.read && err == nil
	if first {
		s.read, s.known = true, true
	}
	s.problem = err
	told := s.told
	select {
	case <-s.tried:
	default:
		close(s.tried)
	}
	s.mu.Unlock()
	if first {
		for _, tell := range told {
			tell(nil)
		}
	}
}

// watch follows the changes since a version, and returns the last one that it knows. Without an error the watch has just ended, as all do.
func (s *store) watch(ctx context.Context, version string) (string, error) {
	lifetime, from := wait.Jitter(watchLifetime, 1), time.Now()
	ctx, cancel := context.WithTimeout(ctx, lifetime+watchSlack)
	defer cancel()
	events, err := s.open(ctx, version, lifetime)
	if err != nil {
		return version, err
	}
	defer func() { _ = events.close() }()
	for {
		if err = events.wait(); err == nil {
			version, err = s.take(events, version)
		}
		if ended(err) && time.Since(from) >= shortWatch {
			return version, nil
		}
		if err != nil {
			return version, err
		}
	}
}

// open opens a watch.
func (s *store) open(ctx context.Context, version string, lifetime time.Duration) (*stream, error) {
	body, err := s.request(s.connection.rest).Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(int(lifetime/time.Second))).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return newStream(body, s.kind.decoder), nil
}

// take decodes and takes over the event that has begun. It returns the version that is known from then on.
func (s *store) take(events *stream, version string) (string, error) {
	event, o, err := events.next()
	if err != nil {
		return version, fmt.Errorf("watch: %w", err)
	}
	if event == watch.Error {
		return version, apierrors.FromObject(o)
	}
	if changed, ok := o.(client.Object); ok {
		version = changed.GetResourceVersion()
		s.apply(event, changed)
	}
	return version, nil
}

// ended reports whether a stream has come to its end, and not to something that cannot be read.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// replace takes what was read in the place of what was known, and tells what differs.
func (s *store) replace(objects map[client.ObjectKey]client.Object, seen digest) {
	s.mu.Lock()
	before, told := s.objects, s.told
	s.objects, s.seen, s.behind = objects, seen, false
	s.mu.Unlock()
	var changed []client.Object
	for key, o := range objects {
		if old := before[key]; old == nil || old.GetResourceVersion() != o.GetResourceVersion() || old.GetUID() != o.GetUID() {
			changed = append(changed, o)
		}
	}
	for key, o := range before {
		if objects[key] == nil {
			changed = append(changed, o)
		}
	}
	if s.kind.Herald && len(changed) > 0 {
		s.connection.suspect()
	}
	for _, o := range changed {
		for _, tell := range told {
			tell(o)
		}
	}
}

// apply takes over one change.
func (s *store) apply(event watch.EventType, o client.Object) {
	if event == watch.Bookmark {
		return
	}
	if s.kind.Herald {
		s.connection.suspect()
	}
	key, kept := client.ObjectKeyFromObject(o), s.kind.keep(o)
	s.mu.Lock()
	known := s.objects[key]
	if event == watch.Deleted || kept == nil {
		delete(s.objects, key)
		kept = known
	} else {
		s.objects[key] = kept
	}
	told := s.told
	s.mu.Unlock()
	if kept == nil {
		return // Nobody has known it.
	}
	for _, tell := range told {
		tell(kept)
	}
}

// tell has every change told from now on, and what is known already.
func (s *store) tell(to func(client.Object)) {
	s.mu.Lock()
	s.told = append(slices.Clone(s.told), to)
	known := slices.Collect(maps.Values(s.objects))
	s.mu.Unlock()
	for _, o := range known {
		to(o)
	}
}

func (s *store) isKnown() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known
}

// ready is nil when all objects have been read. It waits for a moment for the first answer.
func (s *store) ready(ctx context.Context) error {
	s.mu.RLock()
	tried := s.tried
	s.mu.RUnlock()
	select {
	case <-tried:
	default:
		timer := time.NewTimer(firstRead)
		defer timer.Stop()
		select {
		case <-tried:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.read:
		return nil
	case s.problem != nil:
		return s.problem
	default:
		return ErrNotRead
	}
}

// get is a copy of an object; nil when there is none.
func (s *store) get(key client.ObjectKey) runtime.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o := s.objects[key]; o != nil {
		return o.DeepCopyObject()
	}
	return nil
}

// all are copies of all objects, sorted by their names.
func (s *store) all() []runtime.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := slices.SortedFunc(maps.Keys(s.objects), func(a, b client.ObjectKey) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	objects := make([]runtime.Object, 0, len(keys))
	for _, key := range keys {
		objects = append(objects, s.objects[key].DeepCopyObject())
	}
	return objects
}

// withoutManagedFields is what is kept of an object of which nothing else is known.
func withoutManagedFields(o client.Object) client.Object {
	o.SetManagedFields(nil)
	return o
}
