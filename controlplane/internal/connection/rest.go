// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// need is what a Watcher needs of a kind.
type need int

const (
	// needsAlways is a watch for as long as the connection is open.
	needsAlways need = iota
	// needsWatch is a watch for watchLease.
	needsWatch
	// needsNothing is that the probes look at it.
	needsNothing
)

// watchLease is for how long a watch is open after somebody has waited last. It ends when it would have been renewed.
const watchLease = 5 * time.Minute

// want starts the goroutine that reads the objects, unless they have been read and no watch is needed. When a watch is needed after a time
// without one, the objects may be old: Ready fails until they have been read from the cluster again.
func (s *store) want(n need) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n {
	case needsAlways:
		s.always = true
	case needsWatch:
		s.until = time.Now().Add(watchLease)
	case needsNothing:
	}
	if s.read && s.needed() && (!s.runs || s.behind) {
		s.read, s.tried = false, make(chan struct{})
	}
	if s.runs || s.read {
		return
	}
	s.runs = true
	go s.run(s.connection.ends)
}

// needed reports whether somebody needs a watch. The caller holds the lock.
func (s *store) needed() bool { return s.always || time.Now().Before(s.until) }

// rests reports whether nobody needs a watch any more: then its goroutine ends, and the probes look at the kind from now on.
func (s *store) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs = s.needed(); s.runs {
		s.seen = digest{}
	}
	return !s.runs
}

// atRest reports whether the probes are to look at the kind, and whether a herald has changed since they last did.
func (s *store) atRest() (rests, changed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	rests = s.read && !s.runs
	return rests, rests && s.changed
}

// suspect lets the next probe look at all kinds.
func (c *connection) suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stores {
		s.mu.Lock()
		s.changed = true
		s.mu.Unlock()
	}
}

// look asks which versions the objects have, and lets them be read again when those are others than were read.
func (s *store) look(ctx context.Context) error {
	s.mu.Lock()
	s.changed = false
	s.mu.Unlock()
	now, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.changed = true // The next probe looks again.
		return err
	}
	if now != s.seen && !s.runs {
		s.runs, s.behind = true, true
		go s.run(s.connection.ends)
	}
	return nil
}

// ask asks for the versions of all objects. Of a kind that one answer may hold, the API server answers from its memory, also while its etcd
// does not answer.
func (s *store) ask(ctx context.Context) (digest, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	all := versions{}
	request := func() *rest.Request { return s.request(s.connection.rest).SetHeader("Accept", onlyMetadata) }
	err := s.pages(ctx, request, true, func(answer rest.Result) (string, error) {
		text, err := answer.Raw()
		if err != nil {
			return "", err
		}
		found := &metav1.PartialObjectMetadataList{}
		if err := json.Unmarshal(text, found); err != nil {
			return "", fmt.Errorf("decode the metadata of %s: %w", s.kind.path, err)
		}
		for i := range found.Items {
			all.add(&found.Items[i])
		}
		return found.Continue, nil
	})
	if err != nil {
		return digest{}, err
	}
	return all.digest(), nil
}

// state is which state of a kind was read: its version, and a digest of the versions of all its objects.
type state struct {
	version string
	digest  digest
}

// digest is one of the versions of all objects of a kind.
type digest [sha256.Size]byte

// versions has a line for each object.
type versions map[string]struct{}

func (v versions) add(o metav1.Object) {
	v[strings.Join([]string{o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion()}, " ")] = struct{}{}
}

func (v versions) digest() digest {
	lines := make([]string, 0, len(v))
	for line := range v {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(lines, "\n")))
}
