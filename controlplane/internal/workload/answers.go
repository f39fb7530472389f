// SPDX-License-Identifier: Apache-2.0

package workload

import (
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
