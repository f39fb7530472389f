// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/fair"
)

// TestDarkTenant: 200 clusters of a tenant take connections and never answer. Half of the workers wait for them, and a cluster of another
// tenant, which comes after them all, is connected meanwhile.
func TestDarkTenant(t *testing.T) {
	const (
		dark    = 200
		workers = 20
	)
	g := NewWithT(t)
	a, w := newAPI(t), newWire(t, "")
	w.silence(false)
	kubeconfigs := map[string][]byte{}
	for i := range dark {
		name := fmt.Sprintf("dark-%d", i)
		kubeconfigs[name] = w.kubeconfig(t, a, name)
	}
	c := connectionsOf(t, kubeconfigs)
	good := client.ObjectKey{Namespace: "other", Name: "good"}
	for _, o := range clusterWith(good, a.kubeconfig(t, nil)) {
		g.Expect(c.reader.(client.Client).Create(t.Context(), o)).To(Succeed())
	}
	queue := fair.NewQueue(
		workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]()), workers,
		func(request ctrl.Request) string { return request.Namespace }, time.Now)
	var begun, before atomic.Int32
	pass := func(request ctrl.Request) {
		if request.NamespacedName == good {
			before.Store(begun.Load())
		} else {
			begun.Add(1)
		}
		if _, err := c.Reconcile(t.Context(), request); err != nil {
			t.Error(err)
		}
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for request, shutdown := queue.Get(); !shutdown; request, shutdown = queue.Get() {
				if t.Context().Err() == nil {
					pass(request)
				}
				queue.Done(request)
			}
		})
	}
	t.Cleanup(func() {
		queue.ShutDown()
		running.Wait()
	})
	for i := range dark {
		queue.Add(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: fmt.Sprintf("dark-%d", i)}})
	}
	queue.Add(ctrl.Request{NamespacedName: good})
	g.Eventually(func() error { _, err := c.connected(good); return err }, limit).Should(Succeed())
	g.Expect(before.Load()).To(BeNumerically("<", dark/2), "it came last, and did not wait for all that came before it")
}
