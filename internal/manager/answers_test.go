// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

// answering is a controller of which a test plays every part.
type answering struct {
	t       *testing.T
	g       *WithT
	now     time.Time
	answers *answers
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	// after is for how long the object was last put aside.
	after time.Duration
}

// aside is a queue whose objects never come back by themselves.
type aside struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after *time.Duration
}

func (q aside) AddAfter(_ reconcile.Request, after time.Duration) { *q.after = after }

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "demo", Name: "demo"}}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	a := &answering{t: t, g: NewWithT(t), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	a.answers = newAnswers(func() time.Time { return a.now })
	queue := a.answers.newQueue(1)(t.Name(), workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	listening, ok := queue.(*answerQueue)
	a.g.Expect(ok).To(BeTrue())
	listening.TypedRateLimitingInterface = aside{listening.TypedRateLimitingInterface, &a.after}
	a.queue = queue
	t.Cleanup(queue.ShutDown)
	return a
}

func (a *answering) passTime(d time.Duration) { a.now = a.now.Add(d) }

// take is what a worker does before a pass.
func (a *answering) take() {
	a.t.Helper()
	got, shutdown := a.queue.Get()
	a.g.Expect(shutdown).To(BeFalse())
	a.g.Expect(got).To(Equal(request))
}

// pass is a pass of the reconciler that takes some time, during which something happens.
func (a *answering) pass(takes time.Duration, during func(), err error) {
	a.t.Helper()
	_, got := a.answers.timed(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		a.passTime(takes)
		if during != nil {
			during()
		}
		return reconcile.Result{}, err
	})).Reconcile(a.t.Context(), request)
	if err == nil {
		a.g.Expect(got).NotTo(HaveOccurred())
	} else {
		a.g.Expect(got).To(MatchError(err))
	}
}

// observed expects how many answers were observed, and how long they took together, whole and without what they were deferred by.
func (a *answering) observed(count int, whole, own time.Duration) {
	a.t.Helper()
	for name, want := range map[string]time.Duration{AnswerMetric: whole, OwnAnswerMetric: own} {
		got, sum := a.gathered(name)
		a.g.Expect(got).To(BeEquivalentTo(count), name)
		a.g.Expect(sum).To(BeNumerically("~", want.Seconds(), 1e-9), name)
	}
}

// gathered is how many observations a histogram of the controller has, and their sum.
func (a *answering) gathered(name string) (count uint64, sum float64) {
	a.t.Helper()
	families, err := metrics.Registry.Gather()
	a.g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == a.t.Name() {
				count, sum = metric.GetHistogram().GetSampleCount(), metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return count, sum
}

func TestAnswersFromEventToEndOfPass(t *testing.T) {
	a := newAnswering(t)
	a.queue.Add(request)
	a.passTime(30 * time.Millisecond)
	a.queue.Add(request) // Another event while it waits: the first one counts.
	a.passTime(20 * time.Millisecond)
	a.take()
	a.pass(100*time.Millisecond, nil, nil)
	a.queue.Done(request)
	a.observed(1, 150*time.Millisecond, 150*time.Millisecond)
}

func TestAnswersAFailedPassToo(t *testing.T) {
	a := newAnswering(t)
	a.queue.Add(request)
	a.take()
	a.pass(100*time.Millisecond, nil, errors.New("refused"))
	a.observed(1, 100*time.Millisecond, 100*time.Millisecond)
}

// A pass that was deferred is answered late, but the time until it was due is not our own.
func TestAnswersOfADeferredPass(t *testing.T) {
	a := newAnswering(t)
	a.queue.Add(request)
	a.passTime(10 * time.Millisecond)
	a.take()
	a.queue.AddAfter(request, 700*time.Millisecond) // Cluster API's limit: the reconciler is not called.
	a.queue.Done(request)
	a.passTime(200 * time.Millisecond)
	a.queue.Add(request) // Another event meanwhile, which is deferred too.
	a.take()
	a.queue.AddAfter(request, 500*time.Millisecond)
	a.queue.Done(request)
	a.g.Expect(a.after).To(Equal(500 * time.Millisecond))
	a.passTime(520 * time.Millisecond)
	a.queue.Add(request) // It comes back.
	a.take()
	a.pass(80*time.Millisecond, nil, nil)
	a.observed(1, 810*time.Millisecond, 100*time.Millisecond)
}

// An event during a pass is answered by the next one, whenever the pass itself wants to be called again.
func TestAnswersOfAnEventDuringAPass(t *testing.T) {
	a := newAnswering(t)
	a.queue.Add(request)
	a.take()
	a.pass(100*time.Millisecond, func() { a.queue.Add(request) }, nil)
	a.queue.AddAfter(request, time.Hour)
	a.queue.Done(request)
	a.observed(1, 100*time.Millisecond, 100*time.Millisecond)
	a.passTime(40 * time.Millisecond)
	a.take()
	a.pass(10*time.Millisecond, nil, nil)
	a.observed(2, 150*time.Millisecond, 150*time.Millisecond)
}

// A pass that nothing but time has asked for answers nobody.
func TestAnswersNobodyWithoutAnEvent(t *testing.T) {
	a := newAnswering(t)
	a.answers.take(request)
	a.pass(time.Second, nil, nil)
	a.queue.AddAfter(request, time.Second)
	a.queue.Done(request)
	a.g.Expect(a.answers.woken).To(BeEmpty())
	a.g.Expect(a.answers.taken).To(BeEmpty())
	a.observed(0, 0, 0)
}

// Each controller of the managers is built by Build, which measures it.
func TestAllControllersAreMeasured(t *testing.T) {
	g := NewWithT(t)
	built := 0
	for _, root := range []string{"../../bootstrap", "../../controlplane"} {
		g.Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			begun, measured := strings.Count(string(source), ".NewControllerManagedBy("), strings.Count(string(source), "manager.Build(")
			g.Expect(measured).To(Equal(begun), path)
			built += measured
			return err
		})).To(Succeed())
	}
	g.Expect(built).To(BeNumerically(">=", 8))
}

// The span of a pass has the name of the controller, and the pass is measured all the same.
func TestPassesAreTraced(t *testing.T) {
	a, spans := newAnswering(t), tracingtest.New()
	r := a.answers.observed(spans.Context(t.Context()), reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		a.passTime(time.Second)
		return reconcile.Result{}, nil
	}))
	a.queue.Add(request)
	a.take()
	_, err := r.Reconcile(t.Context(), request)
	a.g.Expect(err).NotTo(HaveOccurred())
	a.g.Expect(spans.Named(t.Name())).To(HaveLen(1))
	a.observed(1, time.Second, time.Second)
}
