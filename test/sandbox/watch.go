// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// metal3Version is the version of CAPM3's API that the local control plane serves.
const metal3Version = "v1beta1"

// newScheme returns a scheme with every kind that the sandbox reads.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bmov1alpha1.AddToScheme, assisted.AddToScheme,
		bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register the API types: %w", err)
		}
	}
	return scheme, nil
}

// newMetal3Machine returns an empty Metal3Machine.
func newMetal3Machine() *unstructured.Unstructured {
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion(metal3.InfrastructureGroup + "/" + metal3Version)
	machine.SetKind(metal3.MachineKind)
	return machine
}

// watchedKinds are the kinds whose changes the sandbox waits for and tells of.
func watchedKinds() []client.Object {
	return []client.Object{
		&clusterv1.Cluster{}, &clusterv1.Machine{}, &clusterv1.MachineDeployment{},
		&controlplanev1.OpenshiftAssistedControlPlane{}, &bootstrapv1.OpenshiftAssistedConfig{},
		newMetal3Machine(), &bmov1alpha1.BareMetalHost{},
		&assisted.Agent{}, &assisted.InfraEnv{}, &hiveext.AgentClusterInstall{},
	}
}

// Watch is a cache of the objects that matter to a user, which wakes its waiters when one of them changes. Its Reader
// must not be used to prove that a step is complete: it may be behind.
type Watch struct {
	client.Reader

	mu      sync.Mutex
	changed chan struct{}
	// changes are the times of the last change in each namespace.
	changes  map[string]time.Time
	handlers []func(client.Object)
	stop     context.CancelFunc
	stopped  chan struct{}
}

// newWatch starts watching and returns when every kind was listed.
func newWatch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*Watch, error) {
	objects, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot create the sandbox's cache: %w", err)
	}
	background, cancel := context.WithCancel(context.Background())
	w := &Watch{Reader: objects, changed: make(chan struct{}), changes: map[string]time.Time{}, stop: cancel, stopped: make(chan struct{})}
	go func() {
		defer close(w.stopped)
		// It returns nil when its context ends; what it cannot list is told by WaitForCacheSync.
		_ = objects.Start(background)
	}()
	for _, kind := range watchedKinds() {
		// All kinds at once: the first list of a kind takes the API server about a second, of which it does nothing for most.
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			w.Stop()
			return nil, fmt.Errorf("cannot watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(w.eventHandler()); err != nil {
			w.Stop()
			return nil, fmt.Errorf("cannot watch %T: %w", kind, err)
		}
	}
	if !objects.WaitForCacheSync(ctx) {
		w.Stop()
		return nil, errors.New("the objects of the management cluster could not be listed in time")
	}
	return w, nil
}

// Stop ends the watches.
func (w *Watch) Stop() {
	w.stop()
	<-w.stopped
}

func (w *Watch) eventHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.notify,
		UpdateFunc: func(_, o any) { w.notify(o) },
		DeleteFunc: func(o any) {
			if name, err := toolscache.DeletionHandlingObjectToName(o); err == nil {
				w.wake(name.Namespace)
			}
		},
	}
}

func (w *Watch) notify(o any) {
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	w.mu.Lock()
	handlers := w.handlers
	w.mu.Unlock()
	for _, handle := range handlers {
		handle(object)
	}
	w.wake(object.GetNamespace())
}

func (w *Watch) wake(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes[namespace] = time.Now()
	close(w.changed)
	w.changed = make(chan struct{})
}

// OnChange calls handle for every object that is added or changed from now on, from several goroutines at once. The
// object must not be modified.
func (w *Watch) OnChange(handle func(client.Object)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handlers = append(w.handlers, handle)
}

// next returns a channel that is closed at the next change.
func (w *Watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Check looks at the world and says what is still missing: nothing when it returns "". An error ends the wait.
type Check func(ctx context.Context) (missing string, err error)

// awaitChange returns when something has changed and the time to rest is over, or as soon as the time to wait has expired.
func awaitChange(ctx context.Context, expiry <-chan time.Time, changed <-chan struct{}, duration time.Duration) (expired bool, err error) {
	rested := time.NewTimer(duration)
	defer rested.Stop()
	for over := false; changed != nil || !over; {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-expiry:
			return true, nil
		case <-changed:
			changed = nil
		case <-rested.C:
			over = true
		}
	}
	return false, nil
}

// shortestRest is between two looks of Await at least.
const shortestRest = 200 * time.Millisecond

// Await returns when check finds nothing missing. It looks again when a watched object has changed, after a rest as long as the last look
// took, because some list everything there is and run clusterctl, and the world changes all the time; and once more when the time is over:
// then the error says what was missing. what names the goal in that error.
func (w *Watch) Await(ctx context.Context, timeout time.Duration, what string, check Check) error {
	none := func(time.Time) time.Duration { return 0 }
	return w.await(ctx, timeout, none, what, check)
}

// mostPatience is how many times its timeout AwaitIn waits at most: what is tried in vain again and again changes all the time.
const mostPatience = 3

// AwaitIn is Await for what happens in a namespace: it gives up when no watched object there has changed for as long as timeout. On a busy
// machine a cluster takes longer; only one that is stuck does not change.
func (w *Watch) AwaitIn(ctx context.Context, namespace string, timeout time.Duration, what string, check Check) error {
	patience := func(start time.Time) time.Duration {
		w.mu.Lock()
		defer w.mu.Unlock()
		return min(timeout-time.Since(w.changes[namespace]), mostPatience*timeout-time.Since(start))
	}
	return w.await(ctx, timeout, patience, what, check)
}

// await is Await with more patience: when the time is over, patience returns for how long to go on, 0 for not at all. It gets the time at
// which the wait began.
func (w *Watch) await(
	ctx context.Context, timeout time.Duration, patience func(time.Time) time.Duration, what string, check Check,
) error {
	begin := time.Now()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for expired := false; ; {
		changed, start := w.next(), time.Now()
		missing, err := check(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("cannot wait for %s: %w", what, err)
		case missing == "":
			return nil
		case expired:
			return fmt.Errorf("waited %s for %s, in vain: %s", time.Since(begin).Round(time.Second), what, missing)
		}
		if expired, err = awaitChange(ctx, timer.C, changed, max(shortestRest, time.Since(start))); err != nil {
			return fmt.Errorf("interrupted while waiting for %s: %s: %w", what, missing, err)
		}
		if more := patience(begin); expired && more > 0 {
			expired = false
			timer.Reset(more)
		}
	}
}
