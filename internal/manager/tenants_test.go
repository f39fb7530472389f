// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestHangingTenants: the passes of 200 objects of one tenant, and of 200 of another, wait for servers that never answer, and the passes of
// a third tenant's objects all come to their ends meanwhile.
func TestHangingTenants(t *testing.T) {
	const (
		hanging = 200
		passes  = 100
		workers = 10
		limit   = time.Minute
	)
	g := NewWithT(t)
	ended := make(chan reconcile.Request, passes)
	ctx, cancel := context.WithCancel(t.Context())
	a, queues := newAnswers(time.Now), make(chan workqueue.TypedRateLimitingInterface[reconcile.Request], 1)
	c, err := controller.NewTypedUnmanaged(t.Name(), controller.Options{
		MaxConcurrentReconciles: workers, NewQueue: a.newQueue(workers), SkipNameValidation: ptr.To(true),
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			if request.Namespace != "good" {
				<-ctx.Done()
				return reconcile.Result{}, nil
			}
			ended <- request
			return reconcile.Result{}, nil
		}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queues <- q
		return nil
	}))).To(Succeed())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	queue := <-queues
	for i := range hanging {
		for _, namespace := range []string{"dark", "gloomy"} {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: fmt.Sprint(i)}})
		}
	}
	var took []time.Duration
	for i := range passes {
		from := time.Now()
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "good", Name: fmt.Sprint(i)}})
		select {
		case <-ended:
		case <-time.After(limit):
			t.Fatal("the passes of one tenant hold up those of another")
		}
		took = append(took, time.Since(from))
	}
	slices.Sort(took)
	t.Logf("median %v, 99 of 100 within %v, all within %v", took[passes/2], took[passes*99/100-1], took[passes-1])
	cancel()
	g.Eventually(stopped, limit).Should(Receive(BeNil()))
}
