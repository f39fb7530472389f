// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"time"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Answers remembers what the operators of clusters said, for some time.
type Answers struct {
	ttl       time.Duration
	operators *utilcache.Expiring
}

// NewAnswers returns a memory of answers that are forgotten after ttl.
func NewAnswers(ttl time.Duration) *Answers { return newAnswers(ttl, clock.RealClock{}) }

func newAnswers(ttl time.Duration, c clock.Clock) *Answers {
	return &Answers{ttl: ttl, operators: utilcache.NewExpiringWithClock(c)}
}

// keep remembers an answer; nil, which is no answer, leaves the one before.
func (a *Answers) keep(cluster client.ObjectKey, operators map[string]Operator) {
	if a != nil && operators != nil {
		a.operators.Set(cluster, operators, a.ttl)
	}
}

// last is the last answer of a cluster; nil when there is none, or it is too old.
func (a *Answers) last(cluster client.ObjectKey) map[string]Operator {
	if a == nil {
		return nil
	}
	value, _ := a.operators.Get(cluster)
	operators, _ := value.(map[string]Operator)
	return operators
}

// Failures remembers for a while what failed that is not asked through the ClusterCache, so that not every pass waits for a cluster that
// does not answer. Nil remembers nothing.
type Failures struct {
	ttl    time.Duration
	failed *utilcache.Expiring
}

// NewFailures returns a memory of failures that are forgotten after ttl.
func NewFailures(ttl time.Duration) *Failures { return newFailures(ttl, clock.RealClock{}) }

func newFailures(ttl time.Duration, c clock.Clock) *Failures {
	return &Failures{ttl: ttl, failed: utilcache.NewExpiringWithClock(c)}
}

// failure is what is remembered: a kubeconfig that has changed is another one.
type failure struct {
	what    string
	cluster client.ObjectKey
	with    [sha256.Size]byte
}

// unless makes a call with a kubeconfig unless the same one has failed a while ago: then it fails with the same error.
func (f *Failures) unless(what string, cluster client.ObjectKey, kubeconfig []byte, call func() error) error {
	if f == nil {
		return call()
	}
	key := failure{what, cluster, sha256.Sum256(kubeconfig)}
	if value, _ := f.failed.Get(key); value != nil {
		err, _ := value.(error)
		return err
	}
	err := call()
	if err != nil {
		f.failed.Set(key, err, f.ttl)
	}
	return err
}
