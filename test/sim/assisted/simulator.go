// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// Simulator is assisted-service, its agents, and the hosts that they run on.
type Simulator struct {
	backend *backend
	client  client.Client
	// reader reads past the cache where a decision must not be made on a stale object.
	reader client.Reader

	artifacts artifactServer

	agents    notifier
	acis      notifier
	infraEnvs notifier

	// patience is the clock of Options.ShowEveryState; nil without it.
	patience *patientClock
}

// patientClock is a clock whose time passes a tick at a time, and only when everything that has happened was written: on a busy machine
// several states of a host would be over before the first of them is seen.
type patientClock struct {
	clock.WithTicker

	mu  sync.Mutex
	now time.Time
}

// Now implements clock.Clock.
func (c *patientClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since implements clock.Clock.
func (c *patientClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *patientClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// AddToScheme registers every kind that the simulator reads or writes.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(corev1.AddToScheme(s), aiv1.AddToScheme(s), hivev1.AddToScheme(s), hiveext.AddToScheme(s), bmov1alpha1.AddToScheme(s))
}

// New makes a simulator. It does nothing until its manager runs.
func New(opts Options) *Simulator {
	opts = opts.withDefaults()
	s := &Simulator{}
	if opts.ShowEveryState {
		s.patience = &patientClock{WithTicker: opts.Clock, now: opts.Clock.Now()}
		opts.Clock = s.patience
	}
	s.backend = newBackend(opts)
	return s
}

// SetupWithManager adds the simulator's controllers and its clock to a manager whose scheme has AddToScheme.
func (s *Simulator) SetupWithManager(mgr ctrl.Manager) error {
	s.client, s.reader = mgr.GetClient(), mgr.GetAPIReader()
	for _, setup := range []func(ctrl.Manager) error{
		s.setupArtifacts, s.setupInfraEnv, s.setupAgent, s.setupClusterInstall, s.setupClusterDeployment, s.setupHosts,
	} {
		if err := setup(mgr); err != nil {
			return fmt.Errorf("cannot set up the assisted-service simulator: %w", err)
		}
	}
	return mgr.Add(manager.RunnableFunc(s.run))
}

// run is the simulation's clock.
func (s *Simulator) run(ctx context.Context) error {
	ticker := s.backend.opts.Clock.NewTicker(s.backend.opts.Durations.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			s.Step()
		}
	}
}

// Step advances the simulation to the clock's present. The manager does so by itself; it is exported for tests with a
// clock of their own.
func (s *Simulator) Step() {
	if s.patience != nil {
		if s.agents.busy()+s.acis.busy() > 0 {
			return
		}
		s.patience.advance(s.backend.opts.Durations.Tick)
	}
	changed := s.backend.tick()
	for _, key := range changed.agents {
		s.agents.add(key)
	}
	for _, key := range changed.acis {
		s.acis.add(key)
	}
}

func (s *Simulator) enqueueInfraEnv(key types.NamespacedName) { s.infraEnvs.add(key) }

// notifier lets the backend wake a controller. The queue is known once the controller has started; what comes before is
// not lost, since every object is reconciled at start.
type notifier struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	pending map[types.NamespacedName]bool
}

func (n *notifier) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.queue = queue
		return nil
	})
}

func (n *notifier) add(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queue == nil {
		return
	}
	if n.pending == nil {
		n.pending = map[types.NamespacedName]bool{}
	}
	n.pending[key] = true
	n.queue.Add(reconcile.Request{NamespacedName: key})
}

// busy counts the keys that have not been reconciled since they were added.
func (n *notifier) busy() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.pending)
}

// tracked makes a reconciler of a function that tells the notifier when it has dealt with a key.
func (n *notifier) tracked(fn reconcile.Func) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
		result, err := fn(ctx, req)
		n.mu.Lock()
		defer n.mu.Unlock()
		if err == nil {
			delete(n.pending, req.NamespacedName)
		}
		return result, err
	}
}

// controllerOptions let several simulators live in one process, and reconcile Options.Workers objects at a time. The priority queue of
// controller-runtime up to v0.24 may hang when it is shut down (its issue 3538).
func (s *Simulator) controllerOptions() controller.Options {
	return controller.Options{
		SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: s.backend.opts.Workers, UsePriorityQueue: ptr.To(false),
	}
}

// paused returns a result that waits out a stopped service, which may be up again sooner than was said. ok is false while the service runs.
func (s *Simulator) paused() (ctrl.Result, bool) {
	if rest := s.backend.downFor(); rest > 0 {
		return ctrl.Result{RequeueAfter: max(min(rest, s.backend.opts.Durations.Monitor), time.Millisecond)}, true
	}
	return ctrl.Result{}, false
}

// isUserError says whether the service would blame its user, and not try again.
func isUserError(err error) bool {
	var request *requestError
	return errors.As(err, &request) && request.user
}

// isRequestError says whether the service would show an error in SpecSynced.
func isRequestError(err error) bool {
	var request *requestError
	return errors.As(err, &request)
}
