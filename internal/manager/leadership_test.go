// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

// TestLeadershipBeginsWithTheFirstPass: a manager that waits for its Lease makes no pass, and what it is started with does not count.
func TestLeadershipBeginsWithTheFirstPass(t *testing.T) {
	g := NewWithT(t)
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var l Leadership
	g.Expect(l.Since(first)).To(Equal(first))
	g.Expect(l.Since(first.Add(time.Hour))).To(Equal(first))
}

// TestStillFills: that a cache is not filled is no news for a minute, and everything else that fails is at once.
func TestStillFills(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	unfilled, other := fmt.Errorf("read it: %w", apierrors.NewTimeoutError("the informer has not synced", 0)), errors.New("another")
	for name, tt := range map[string]struct {
		err   error
		after time.Duration
		want  bool
	}{
		"nothing failed":              {nil, 0, false},
		"a cache that is not filled":  {unfilled, FillingTime - time.Second, true},
		"the same a minute later":     {unfilled, FillingTime, false},
		"something else":              {other, 0, false},
		"two caches":                  {kerrors.NewAggregate([]error{unfilled, kerrors.NewAggregate([]error{unfilled})}), 0, true},
		"a cache, and something else": {kerrors.NewAggregate([]error{unfilled, other}), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var l Leadership
			l.Since(first)
			NewWithT(t).Expect(l.StillFills(tt.err, first.Add(tt.after))).To(Equal(tt.want))
		})
	}
}
