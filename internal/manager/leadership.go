// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

const (
	// FillingTime is how long the cache may take to be filled before a status tells that something cannot be read.
	FillingTime = time.Minute
	// FillingRetryInterval is when a pass begins again that found the cache not filled. Its read waits as well, until the cache is.
	FillingRetryInterval = time.Second
)

// Leadership is since when a manager acts. One that waits for its Lease reconciles nothing and probes no cluster: what it does not know
// when its Lease comes, however long after its start, is no news.
type Leadership struct {
	once  sync.Once
	first time.Time
}

// Since is the time of the first pass; now is the time of this one.
func (l *Leadership) Since(now time.Time) time.Time {
	l.once.Do(func() { l.first = now })
	return l.first
}

// StillFills reports whether reads failed because the manager has only begun to fill its cache. Kinds that are read and not watched, such
// as Metal3Machines, are filled from the first read on, which takes longer than a read may where there are thousands. That is no news of
// what is reconciled: without this, each start of a manager would write that into hundreds of statuses, and take it back.
func (l *Leadership) StillFills(err error, now time.Time) bool {
	since, failures := now.Sub(l.Since(now)), []error{err}
	var several kerrors.Aggregate
	if errors.As(err, &several) {
		failures = kerrors.Flatten(several).Errors()
	}
	return since < FillingTime && !slices.ContainsFunc(failures, func(err error) bool { return !apierrors.IsTimeout(err) })
}
