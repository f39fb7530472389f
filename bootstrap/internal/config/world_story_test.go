// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/agent"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/host"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/inject"
)

// story is what happens to the hosts of a cluster, from the time when the manager is started.
type story struct {
	begin    func(*testing.T) *world
	chapters []chapter
	// left fails the test when something is left in the end that must not; nil when that is what is without a fault.
	left func(*world)
	// like is set when the calls that fail are those of another story, so that the manager ends and loses answers, and no more.
	like bool
	// all is set when calls are throttled and time out too. Both end a call as one does that fails, and differ from it in their words.
	all bool
	// more is how many writes more than usual it takes when a call fails.
	more int
}

// modes are what happens to the calls of the story: with the race detector one of them, another one for each story.
func (s story) modes(number int) []inject.Mode {
	modes := inject.Modes()
	switch {
	case s.like:
		modes = []inject.Mode{inject.Lost, inject.ManagerEnds}
	case !s.all:
		modes = []inject.Mode{inject.Fails, inject.Lost, inject.Conflict, inject.WatchCloses, inject.ManagerEnds}
	}
	if thorough {
		return modes
	}
	return []inject.Mode{modes[number%len(modes)]}
}

// chapter is what a user does, and how it ends.
type chapter struct {
	do    func(*world)
	until func(*world) bool
	// halfway: the next chapter begins at once, and not when nothing happens any more.
	halfway bool
}

// tell tells the story with the calls of a manager.
func (s story) tell(t *testing.T, calls *inject.Calls) inject.Ending {
	t.Helper()
	w := s.begin(t)
	w.t = t
	w.start(calls)
	for _, c := range s.chapters {
		if c.do != nil {
			c.do(w)
		}
		w.play(func() bool { return c.until(w) }, c.halfway)
	}
	if s.left != nil {
		s.left(w)
	}
	return inject.Ending{Hub: w.hub, Others: w.left(), MoreWrites: s.more}
}

// start starts a manager.
func (w *world) start(calls *inject.Calls) {
	calls.Use(w.hub)
	w.manager = &inject.Manager{Calls: calls, Now: func() time.Time { return w.now }, Start: func() []inject.Controller {
		return w.controllers(calls)
	}}
	w.manager.Run()
}

// controllers are those of a manager that has just been started, with their own watches.
func (w *world) controllers(calls *inject.Calls) []inject.Controller {
	cached, live, recorder := calls.Client(), calls.Live(), &events.FakeRecorder{}
	gate, err := manager.LearnGate(context.Background(), w.hub, assisted.CRDInfraEnvs, assisted.CRDNMStateConfigs, assisted.CRDAgents,
		assisted.CRDAgentClusterInstalls, assisted.CRDClusterDeployments, metal3.CRDMachines, metal3.CRDBareMetalHosts)
	w.must(err)
	now := func() time.Time { return w.now.Add(w.ahead) }
	w.clock = clocktesting.NewFakeClock(now())
	hosts := &host.Reconciler{Client: cached, APIReader: live, Gate: gate, Recorder: recorder, Now: now}
	configs := &Reconciler{
		Client: cached, APIReader: live, Ignitions: ignitions{w, calls.Remote}, Gate: gate, Recorder: recorder, Hosts: hosts, Now: now,
		secrets: newSecrets(live, w.clock),
	}
	agents := &agent.Reconciler{Client: cached, APIReader: live, Gate: gate, Recorder: recorder}
	ofConfigs, ofAgents := w.newWatched(calls, cached), w.newWatched(calls, cached)
	ctx, mapper := ofConfigs.context(), mapping.Mapper{Client: cached, Gate: gate}
	log, changes := logr.Discard(), predicates.ResourceIsChanged(w.hub.Scheme(), logr.Discard())
	ofConfigs.kind(&bootstrapv1.OpenshiftAssistedConfig{}, &handler.EnqueueRequestForObject{})
	ofConfigs.kind(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(mapper.FromMachine), changes)
	ofConfigs.kind(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(mapper.FromCluster), changes,
		predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(w.hub.Scheme(), log))
	w.must(configs.watch(ctx, ofConfigs, ofConfigs))
	w.must(agents.Watch(ctx, ofAgents, ofAgents))
	return []inject.Controller{ofConfigs.runs(configs.Reconcile), ofAgents.runs(agents.Reconcile)}
}

// watched is a controller, and the manager that it has its watches from. Events come at once.
type watched struct {
	ctrl.Manager
	*capicontrollerutil.FakeController
	w         *world
	calls     *inject.Calls
	cached    client.Client
	informers *informertest.FakeInformers
	// seen are the objects as the watches have told of them.
	seen map[string]client.Object
	// woken are the objects whose pass is due.
	woken *queue
}

// queue takes what the watches wake.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	requests []reconcile.Request
}

func (q *queue) Add(r reconcile.Request) { q.requests = append(q.requests, r) }

func (w *world) newWatched(calls *inject.Calls, cached client.Client) *watched {
	return &watched{
		FakeController: capicontrollerutil.NewFakeController(), w: w, calls: calls, cached: cached, seen: map[string]client.Object{},
		informers: &informertest.FakeInformers{Scheme: w.hub.Scheme()}, woken: &queue{},
	}
}

func (c *watched) GetCache() cache.Cache      { return c.informers }
func (c *watched) GetClient() client.Client   { return c.cached }
func (c *watched) GetScheme() *runtime.Scheme { return c.w.hub.Scheme() }

func (c *watched) context() context.Context {
	return ctrl.LoggerInto(context.Background(), logr.Discard())
}

// Watch starts a watch. That of CRDs, which never change here, is none of a kind.
func (c *watched) Watch(src source.TypedSource[reconcile.Request]) error {
	kind, ok := src.(source.TypedSyncingSource[reconcile.Request])
	if !ok {
		return nil
	}
	if err := kind.Start(c.context(), c.woken); err != nil {
		return err
	}
	return kind.WaitForSync(c.context())
}

// kind starts a watch as the builder of controllers does.
func (c *watched) kind(o client.Object, to handler.EventHandler, only ...predicate.Predicate) {
	c.w.must(c.Watch(source.Kind(c.informers, o, to, only...)))
}

// DeferNextReconcileUntilCacheUpToDate waits for a kind.
func (c *watched) DeferNextReconcileUntilCacheUpToDate(_ metav1.Object, of capicontrollerutil.GroupVersionKindType, _ string) {
	c.calls.Defer(of.Kind)
}

// runs is the controller with its passes.
func (c *watched) runs(reconcile func(context.Context, ctrl.Request) (ctrl.Result, error)) inject.Controller {
	return inject.Controller{
		Reconcile: func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			return reconcile(ctrl.LoggerInto(ctx, logr.Discard()), r)
		},
		Wakes: c.wakes,
	}
}

// wakes tells the watches of an object as it is now.
func (c *watched) wakes(o client.Object) []ctrl.Request {
	c.w.changed = true
	ctx := context.Background()
	now, _ := o.DeepCopyObject().(client.Object)
	err := c.w.hub.Get(ctx, client.ObjectKeyFromObject(o), now)
	c.w.must(client.IgnoreNotFound(err))
	informer, failed := c.informers.FakeInformerFor(ctx, o)
	c.w.must(failed)
	key := fmt.Sprintf("%T %s %s", o, o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o))
	switch before, known := c.seen[key]; {
	case err == nil && known:
		informer.Update(before, now)
	case err == nil:
		informer.Add(now)
	case known:
		informer.Delete(before)
	}
	delete(c.seen, key)
	if err == nil {
		c.seen[key] = now
	}
	woken := c.woken.requests
	c.woken.requests = nil
	return woken
}

const (
	// restingSteps is for how long nothing happens once a chapter has ended.
	restingSteps = 3
	// maxSteps is far more than a chapter takes.
	maxSteps = 400
)

// play lets the manager and everybody else act until reached and, unless that is halfway, until nothing happens any more.
func (w *world) play(reached func() bool, halfway bool) {
	w.t.Helper()
	for step, rests := 1, 0; rests < restingSteps && (!halfway || !reached()); step++ {
		if step > maxSteps {
			w.t.Fatalf("not reached after %d steps:\n%s\n%s", maxSteps, w.left(), w.conditions())
		}
		rests++
		w.changed = false
		worked := w.manager.Work(w.t)
		if worked || !reached() || w.manager.Soon(10*time.Minute) || w.steps <= w.until {
			rests = 0
		}
		w.step()
		if !worked && !w.changed && rests == 0 && w.happens == nil {
			w.wait()
		}
	}
}

// wait lets the time pass in which nothing happens, until the manager does something by itself.
func (w *world) wait() {
	w.t.Helper()
	for range 24 * 60 {
		if w.manager.Soon(0) {
			return
		}
		w.tick()
	}
	w.t.Fatalf("nothing happens any more:\n%s\n%s", w.left(), w.conditions())
}

// tick is a minute.
func (w *world) tick() {
	w.now = w.now.Add(time.Minute)
	w.clock.SetTime(w.now.Add(w.ahead))
}

// step lets everybody but the manager act once.
func (w *world) step() {
	if happens := w.happens[w.steps]; happens != nil {
		happens()
	}
	w.steps++
	for _, act := range []func(){w.makers, w.controlPlane, w.core, w.metal3, w.service, w.collect} {
		act()
	}
	w.tick()
}

// left is what became of the servers.
func (w *world) left() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.servers)) {
		s := w.servers[name]
		fmt.Fprintf(&b, "%s: %d boots, discovers %t, frozen %t, Node %q\n", name, s.boots, s.infraEnv != "", s.frozen, s.node)
	}
	return b.String()
}

// conditions are all conditions of all configs.
func (w *world) conditions() string {
	var b strings.Builder
	for _, m := range w.machines() {
		fmt.Fprintf(&b, "%s, annotations %v, node %q\n", m.Name, m.Annotations, m.Status.NodeRef.Name)
		if config := w.config(m.Name); config != nil {
			for _, c := range config.Status.Conditions {
				fmt.Fprintf(&b, "  %s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	for _, a := range w.agents() {
		fmt.Fprintf(&b, "%s: %s, %+v\n", a.Name, a.Status.DebugInfo.State, a.Spec)
	}
	return b.String()
}
