// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestAwaitIn: a cluster that goes on is waited for longer than one that is stuck, though not forever.
func TestAwaitIn(t *testing.T) {
	const timeout = time.Minute
	for name, tc := range map[string]struct {
		namespace string
		// changes happen every half minute: as many, in the namespace of the cluster or elsewhere.
		changes int
		waits   time.Duration
	}{
		"nothing changes":           {"demo", 0, timeout},
		"another namespace changes": {"other", 10, timeout},
		"three changes":             {"demo", 3, 90*time.Second + timeout},
		"it changes without end":    {"demo", 100, mostPatience * timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				w := &Watch{changed: make(chan struct{}), changes: map[string]time.Time{}}
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for range tc.changes {
						select {
						case <-ctx.Done():
							return
						case <-time.After(timeout / 2):
						}
						cluster := &clusterv1.Cluster{}
						cluster.Namespace = tc.namespace
						w.notify(cluster)
					}
				}()
				start := time.Now()
				err := w.AwaitIn(ctx, "demo", timeout, "the cluster", func(context.Context) (string, error) { return "a Node", nil })
				cancel()
				g.Expect(err).To(MatchError("waited " + tc.waits.String() + " for the cluster, in vain: a Node"))
				g.Expect(time.Since(start)).To(Equal(tc.waits))
			})
		})
	}
}
