// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	"github.com/capi-openshift/agent-providers/internal/fair"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

const (
	// AnswerMetric is a histogram, by controller, of the seconds from an event that wakes an object to the end of the pass that answers it. Of
	// several events that one pass answers, the first one counts. Passes that no event has asked for are not in it.
	AnswerMetric = "openshift_assisted_answer_seconds"
	// OwnAnswerMetric is the same without the time by which Cluster API's limit has deferred the pass: it lets an object have one pass a
	// second. What is left is the wait for a free worker and the pass itself.
	OwnAnswerMetric = "openshift_assisted_own_answer_seconds"
)

// answerBuckets reach from what one read takes to what nobody should wait for. Two of them, 165 ms and 400 ms, are what 99 of 100 answers,
// and all of them, should not exceed when a hundred clusters are installed at once (docs/scale.md).
var answerBuckets = []float64{.005, .01, .025, .05, .075, .1, .165, .25, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 5, 10}

var (
	answerSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: AnswerMetric, Help: "Seconds from an event to the end of the pass that answers it.", Buckets: answerBuckets,
	}, []string{"controller"})
	ownAnswerSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    OwnAnswerMetric,
		Help:    "Seconds from an event to the end of the pass that answers it, without those by which the pass was deferred.",
		Buckets: answerBuckets,
	}, []string{"controller"})
)

func init() { metrics.Registry.MustRegister(answerSeconds, ownAnswerSeconds) }

// Build builds a controller that tells how soon it answers, whose passes can be traced, and of whose workers no namespace gets all: passes
// wait for the APIs of installed clusters, and any tenant can have hundreds that never answer. Every controller of the managers is built
// with it.
func Build(
	ctx context.Context, builder *capicontrollerutil.Builder, options controller.Options, r reconcile.Reconciler,
) (capicontrollerutil.Controller, error) {
	a := newAnswers(time.Now)
	options.NewQueue = a.newQueue(options.MaxConcurrentReconciles)
	return builder.WithOptions(options).Build(ctx, a.observed(ctx, r))
}

// answers measures how soon a controller answers events. The histograms of controller-runtime do not tell: an object that Cluster API's
// limit defers leaves the queue at once, has a pass that does nothing, and comes back later, which are two short waits for them.
type answers struct {
	now func() time.Time

	mu         sync.Mutex
	controller string
	// woken are the objects with an event that no pass has begun to answer.
	woken map[reconcile.Request]wake
	// taken are the objects that have left the queue and are not done; true once a pass of the reconciler has begun.
	taken map[reconcile.Request]bool
}

// wake is when an object was woken, and until when its pass was deferred.
type wake struct{ event, deferred time.Time }

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, woken: map[reconcile.Request]wake{}, taken: map[reconcile.Request]bool{}}
}

// newQueue makes the queue that controller-runtime makes by itself, lets it share out the workers fairly, and listens to it.
func (a *answers) newQueue(
	workers int,
) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(
		controllerName string, limiter workqueue.TypedRateLimiter[reconcile.Request],
	) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.controller = controllerName
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(
			limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: controllerName},
		)
		return &answerQueue{TypedRateLimitingInterface: fair.NewQueue(queue, workers, namespaceOf, a.now), answers: a}
	}
}

// name is the controller's, which is known when its queue is made.
func (a *answers) name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.controller
}

// namespaceOf is the tenant of an object.
func namespaceOf(request reconcile.Request) string { return request.Namespace }

// answerQueue tells of what comes and goes.
type answerQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	answers *answers
}

// Add is called by event handlers. What comes back after a while is added to the queue inside.
func (q *answerQueue) Add(request reconcile.Request) {
	q.answers.wake(request)
	q.TypedRateLimitingInterface.Add(request)
}

// Get implements the queue.
func (q *answerQueue) Get() (reconcile.Request, bool) {
	request, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.answers.take(request)
	}
	return request, shutdown
}

// AddAfter is called when a pass has asked for another one, and when there was none because it was too early.
func (q *answerQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.answers.comesBack(request, after)
	q.TypedRateLimitingInterface.AddAfter(request, after)
}

// Done implements the queue.
func (q *answerQueue) Done(request reconcile.Request) {
	q.answers.done(request)
	q.TypedRateLimitingInterface.Done(request)
}

func (a *answers) wake(request reconcile.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, waits := a.woken[request]; !waits {
		a.woken[request] = wake{event: a.now()}
	}
}

func (a *answers) take(request reconcile.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken[request] = false
}

// comesBack notes that a pass is deferred. When one has begun already, the event has come since: it is not deferred.
func (a *answers) comesBack(request reconcile.Request, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun, taken := a.taken[request]
	if w, waits := a.woken[request]; waits && taken && !begun {
		w.deferred = a.now().Add(after)
		a.woken[request] = w
	}
}

func (a *answers) done(request reconcile.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, request)
}

// begin is the begin of a pass: it answers what has happened until now.
func (a *answers) begin(request reconcile.Request) (wake, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken[request] = true
	w, woken := a.woken[request]
	delete(a.woken, request)
	return w, woken
}

// observed is a reconciler whose passes are measured, and traced when the context says so.
func (a *answers) observed(ctx context.Context, r reconcile.Reconciler) reconcile.Reconciler {
	return a.timed(tracing.Passes(ctx, a.name, r))
}

// timed lets a reconciler's passes be measured, whether they succeed or not.
func (a *answers) timed(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if w, woken := a.begin(request); woken {
			defer func() { a.observe(w) }()
		}
		return r.Reconcile(ctx, request)
	})
}

func (a *answers) observe(w wake) {
	end, due := a.now(), w.event
	if w.deferred.After(due) {
		due = w.deferred
	}
	answerSeconds.WithLabelValues(a.controller).Observe(end.Sub(w.event).Seconds())
	ownAnswerSeconds.WithLabelValues(a.controller).Observe(end.Sub(due).Seconds())
}
