// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// gateName is the name of the controller of CRDs.
const gateName = "crdgate"

// Watcher is a controller to which sources can be added while it runs.
type Watcher interface {
	// Watch starts a source, at once or when the controller starts.
	Watch(src source.TypedSource[reconcile.Request]) error
}

// Gate knows which CRDs are served and starts watches on kinds whose CRDs appear later, so that a manager is ready before hive,
// assisted-service or Metal3 are installed and needs no restart when they are (DESIGN D15, CONTRACT CTL-20).
type Gate struct {
	client client.Reader

	mu      sync.Mutex
	served  map[string]bool
	pending map[string][]func() error
	resync  []chan event.GenericEvent
}

// NewGate learns which of the CRDs are served now and watches for the others. The manager need not have been started.
func NewGate(ctx context.Context, mgr ctrl.Manager, crds ...string) (*Gate, error) {
	g, err := LearnGate(ctx, mgr.GetAPIReader(), crds...)
	if err != nil {
		return nil, err
	}
	g.client = mgr.GetClient()
	if missing := g.Missing(crds...); len(missing) > 0 {
		mgr.GetLogger().Info("Waiting for CRDs", "CustomResourceDefinitions", missing)
	}
	wanted := predicate.NewPredicateFuncs(func(o client.Object) bool { return slices.Contains(crds, o.GetName()) })
	err = ctrl.NewControllerManagedBy(mgr).Named(gateName).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(wanted)).
		Complete(tracing.Passes(ctx, func() string { return gateName }, reconcile.Func(g.reconcile)))
	if err != nil {
		return nil, fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return g, nil
}

// LearnGate learns which of the CRDs are served now, and watches for none.
func LearnGate(ctx context.Context, reader client.Reader, crds ...string) (*Gate, error) {
	g := &Gate{served: map[string]bool{}, pending: map[string][]func() error{}}
	for _, name := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := reader.Get(ctx, types.NamespacedName{Name: name}, crd)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		g.served[name] = err == nil && established(crd)
	}
	return g, nil
}

// Missing returns those of the CRDs that are not served yet, sorted.
func (g *Gate) Missing(crds ...string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var missing []string
	for _, name := range crds {
		if !g.served[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// Watch starts the source on a controller as soon as the CRD is served.
func (g *Gate) Watch(c Watcher, crd string, src source.TypedSource[reconcile.Request]) error {
	return g.When(crd, func() error { return c.Watch(src) })
}

// When does something once, as soon as the CRD is served, and before it tells anybody that it is; in the order of the calls.
func (g *Gate) When(crd string, do func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.served[crd] {
		return do()
	}
	g.pending[crd] = append(g.pending[crd], do)
	return nil
}

// Resync makes a controller reconcile the requests of all whenever a CRD appears or disappears: objects that waited for it get no event of
// their own.
func (g *Gate) Resync(c Watcher, all func(context.Context) []reconcile.Request) error {
	// One buffered event is enough: it stands for "look at everything again".
	events := make(chan event.GenericEvent, 1)
	g.mu.Lock()
	g.resync = append(g.resync, events)
	g.mu.Unlock()
	return c.Watch(source.Channel(events, handler.EnqueueRequestsFromMapFunc(
		func(ctx context.Context, _ client.Object) []reconcile.Request { return all(ctx) })))
}

// reconcile notes that a CRD is served, starts the watches that waited for it and wakes the controllers.
func (g *Gate) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := g.client.Get(ctx, req.NamespacedName, crd)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read CustomResourceDefinition %s: %w", req.Name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch served := err == nil && established(crd); {
	case !served && g.served[req.Name]:
		// The cache keeps the last objects of the kind, though all of them are gone: nobody may wait for them to go.
		g.served[req.Name] = false
		ctrl.LoggerFrom(ctx).Info("CRD is not served any more", "CustomResourceDefinition", req.Name)
		g.wake(crd)
		return reconcile.Result{}, nil
	case !served, g.served[req.Name]:
		return reconcile.Result{}, nil
	}
	for len(g.pending[req.Name]) > 0 {
		if err := g.pending[req.Name][0](); err != nil {
			return reconcile.Result{}, fmt.Errorf("begin with the kind of CustomResourceDefinition %s: %w", req.Name, err)
		}
		g.pending[req.Name] = g.pending[req.Name][1:]
	}
	g.served[req.Name] = true
	ctrl.LoggerFrom(ctx).Info("CRD is served", "CustomResourceDefinition", req.Name)
	g.wake(crd)
	return reconcile.Result{}, nil
}

// wake makes every controller look at everything again.
func (g *Gate) wake(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, events := range g.resync {
		select {
		case events <- event.GenericEvent{Object: crd}:
		default: // An event that stands for the same thing is waiting already.
		}
	}
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
