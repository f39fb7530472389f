// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// backend is the service's own database and the machines that talk to it. It outlives restarts of the service.
//
// running has the machine that registered last under a host's identifier. Everything happens either in a call from a reconciler (a REST
// request in reality) or in tick. Exported state is copied out; nothing outside this type's methods may hold a host or a cluster, but to
// compare it.
type backend struct {
	opts Options

	// mu is that of the data centre.
	mu        *sync.Mutex
	metal     *Metal
	rng       *rand.Rand
	infraEnvs map[types.NamespacedName]*infraEnv
	clusters  map[string]*cluster
	byCD      map[types.NamespacedName]string
	hosts     map[string]*host
	// machines are all of the data centre, also those of other management clusters: see machine.hub.
	machines map[HostKey]*machine
	tokens   map[string]types.NamespacedName
	running  map[string]*machine
	faults   faultState

	registrations int
	nextMonitor   time.Time
	tickTime      time.Time
	dirtyAgents   map[types.NamespacedName]bool
	dirtyACIs     map[types.NamespacedName]bool
}

// infraEnv is the backend's row of an InfraEnv. clusterID is what it was bound to at first sight and never changes
// (ASSISTED fact 10).
type infraEnv struct {
	key        types.NamespacedName
	id         string
	clusterID  string
	clusterRef *types.NamespacedName
	image      imageInputs
	// osImage is the version of the operating system in the image.
	osImage string
	digest  string
	token   string
	created time.Time
}

func newBackend(opts Options) *backend {
	return &backend{
		opts:        opts,
		mu:          &opts.Metal.mu,
		metal:       opts.Metal,
		rng:         rand.New(rand.NewSource(opts.Seed + 1)),
		infraEnvs:   map[types.NamespacedName]*infraEnv{},
		clusters:    map[string]*cluster{},
		byCD:        map[types.NamespacedName]string{},
		hosts:       map[string]*host{},
		machines:    opts.Metal.machines,
		tokens:      map[string]types.NamespacedName{},
		running:     map[string]*machine{},
		faults:      newFaultState(),
		dirtyAgents: map[types.NamespacedName]bool{},
		dirtyACIs:   map[types.NamespacedName]bool{},
	}
}

// now is the present. Within a tick it stands still: hosts that begin something in the same tick also end it in the same
// one. The caller holds the lock.
func (b *backend) now() time.Time {
	if b.tickTime.IsZero() {
		return b.opts.Clock.Now()
	}
	return b.tickTime
}

// uuid returns the next identifier of the seeded sequence.
func (b *backend) uuid() string {
	raw := make([]byte, 16)
	for i := range raw {
		raw[i] = byte(b.rng.Intn(256))
	}
	raw[6] = raw[6]&0x0f | 0x40
	raw[8] = raw[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[0:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// newToken returns the next random text of n characters that are safe in a URL.
func (b *backend) newToken(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[b.rng.Intn(len(alphabet))]
	}
	return string(text)
}

// jitter spreads a duration over 80 to 120 percent, so that hosts do not move in step.
func (b *backend) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*b.rng.Float64()))
}

// serviceUp says whether the service answers.
func (b *backend) serviceUp(now time.Time) bool {
	return !b.faults.away && !now.Before(b.faults.downUntil)
}

// downFor returns how long the service will not answer yet, zero when it does.
func (b *backend) downFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.serviceUp(b.now()) {
		return 0
	}
	return max(b.faults.downUntil.Sub(b.now()), b.opts.Durations.Monitor)
}

// changes are the custom resources whose backend state changed since the last tick, in a fixed order.
type changes struct {
	agents []types.NamespacedName
	acis   []types.NamespacedName
}

// tick advances everything to now: machines first, then the monitors when they are due.
func (b *backend) tick() changes {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.tickTime = now
	defer func() { b.tickTime = time.Time{} }()
	up := b.serviceUp(now)
	for _, key := range sortedHostKeys(b.machines) {
		if m := b.machines[key]; m.hub == b {
			b.tickMachine(m, now, up)
			b.serve(m, up)
		}
	}
	if up && !now.Before(b.nextMonitor) {
		b.nextMonitor = now.Add(b.opts.Durations.Monitor)
		b.monitor(now)
	}
	b.applyWorkloads()
	out := changes{agents: sortedHostKeys(b.dirtyAgents), acis: sortedHostKeys(b.dirtyACIs)}
	clear(b.dirtyAgents)
	clear(b.dirtyACIs)
	return out
}

func (b *backend) monitor(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(b.hosts)) {
		b.monitorHost(b.hosts[id], now)
	}
	for _, id := range slices.Sorted(maps.Keys(b.clusters)) {
		b.monitorCluster(b.clusters[id], now)
	}
}

func (b *backend) touchHost(h *host) {
	b.dirtyAgents[h.key()] = true
	h.revision++
	if c := b.clusters[h.clusterID]; c != nil {
		b.touchCluster(c)
	}
}

func (b *backend) touchCluster(c *cluster) { b.dirtyACIs[c.aci] = true }

func sortedHostKeys[V any](m map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		switch {
		case a.String() < b.String():
			return -1
		case a.String() > b.String():
			return 1
		}
		return 0
	})
}

// requestError is an error of the service's REST API. user errors are never retried by the service; others are.
type requestError struct {
	user bool
	text string
}

func (e *requestError) Error() string { return e.text }

func userError(format string, args ...any) error {
	return &requestError{user: true, text: fmt.Sprintf(format, args...)}
}

func serverError(format string, args ...any) error {
	return &requestError{text: fmt.Sprintf(format, args...)}
}
