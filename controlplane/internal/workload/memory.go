// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"time"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory remembers for some time what clusters said, or that they did not answer. Nil remembers nothing.
type Memory struct {
	ttl    time.Duration
	values *utilcache.Expiring
}

// NewMemory returns a memory that forgets after ttl.
func NewMemory(ttl time.Duration) *Memory { return newMemory(ttl, clock.RealClock{}) }

func newMemory(ttl time.Duration, c clock.Clock) *Memory {
	return &Memory{ttl: ttl, values: utilcache.NewExpiringWithClock(c)}
}

func (m *Memory) keep(key, value any) {
	if m != nil {
		m.values.Set(key, value, m.ttl)
	}
}

// last is what was kept last; nil when that is too long ago, or nothing was.
func (m *Memory) last(key any) any {
	if m == nil {
		return nil
	}
	value, _ := m.values.Get(key)
	return value
}

// question is what a cluster was asked with a kubeconfig: one that has changed asks another question.
type question struct {
	what    string
	cluster client.ObjectKey
	with    [sha256.Size]byte
}

// unless makes a call with a kubeconfig unless the same one has failed a while ago: then it fails with the same error, so that not every
// pass waits for a cluster that does not answer.
func (m *Memory) unless(what string, cluster client.ObjectKey, kubeconfig []byte, call func() error) error {
	key := question{what, cluster, sha256.Sum256(kubeconfig)}
	if failed, ok := m.last(key).(error); ok {
		return failed
	}
	err := call()
	if err != nil {
		m.keep(key, err)
	}
	return err
}
