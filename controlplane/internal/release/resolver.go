// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fair"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

const (
	// workers is the number of registries that are asked at a time. The dead registries of one tenant take half of them at most.
	workers = 8
	// firstRetry and lastRetry are the times between attempts. No event tells when a registry is back or has been given the image.
	firstRetry = 30 * time.Second
	lastRetry  = time.Hour
)

// Request is what a control plane wants to know.
type Request struct {
	// Image is the name of the release image.
	Image string
	// PullSecret is the name of the Secret with the credentials, in the control plane's namespace.
	PullSecret string
	// TrustBundle are PEM certificates that are trusted besides those of the system.
	TrustBundle string
	// TrustBundleRef is the name of the ConfigMap with such certificates, in the control plane's namespace; empty when there is none.
	TrustBundleRef string
	// MirrorRegistryRef is the name of the ConfigMap with the mirrors of the cluster, in the control plane's namespace; empty when there is
	// none.
	MirrorRegistryRef string
}

// Answer is what is known. Without a Release and an Err it is not known yet.
type Answer struct {
	// Release is what the image is; nil while that is not known.
	Release *Release
	// Err is why the last attempt failed.
	Err error
}

// Fetcher asks a registry.
type Fetcher interface {
	Fetch(ctx context.Context, image string, access Access) (Release, error)
}

// Resolver answers requests of control planes beside their reconciler. It is a runnable of the manager, and runs where the reconciler does.
type Resolver struct {
	// Reader reads pull secrets, trust bundles and mirrors; it must not cache them.
	Reader client.Reader
	// Registry asks registries.
	Registry Fetcher

	events chan event.GenericEvent
	queue  *fair.Queue[types.NamespacedName]

	mu    sync.Mutex
	known map[types.NamespacedName]entry
}

// entry is the last request of a control plane and its answer.
type entry struct {
	request Request
	answer  Answer
	// origin is the pass that has asked.
	origin tracing.Origin
}

// NewResolver returns a Resolver that answers once it is started.
func NewResolver(reader client.Reader, registry Fetcher) *Resolver {
	return &Resolver{
		Reader:   reader,
		Registry: registry,
		events:   make(chan event.GenericEvent),
		queue: fair.NewNamedQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry), workers,
		),
		known: map[types.NamespacedName]entry{},
	}
}

// Events tell of control planes whose answer has changed.
func (r *Resolver) Events() <-chan event.GenericEvent { return r.events }

// Lookup returns what is known, at once. What is not known is found out, and the control plane gets an event.
func (r *Resolver) Lookup(ctx context.Context, controlPlane types.NamespacedName, request Request) Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.known[controlPlane]; ok && e.request == request {
		return e.answer
	}
	r.known[controlPlane] = entry{request: request, origin: tracing.From(ctx)}
	r.queue.Forget(controlPlane)
	r.queue.Add(controlPlane)
	return Answer{}
}

// Forget drops the answer for a control plane that does not ask for its release any more.
func (r *Resolver) Forget(controlPlane types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, controlPlane)
	r.queue.Forget(controlPlane)
}

// Start answers requests until the context ends.
func (r *Resolver) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	running.Wait()
	return nil
}

func (r *Resolver) next(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	request, origin, wanted := r.wanted(key)
	if !wanted {
		return true
	}
	found, err := r.traced(origin.Into(ctx), key.Namespace, request)
	answer := Answer{Release: &found}
	if err != nil {
		answer = Answer{Err: err}
		ctrl.LoggerFrom(ctx).
			Info("Cannot resolve the release image", "OpenshiftAssistedControlPlane", key, "image", request.Image, "reason", detail(err))
	}
	if r.answer(key, request, answer) {
		r.send(ctx, key)
	}
	return true
}

func (r *Resolver) traced(ctx context.Context, namespace string, request Request) (_ Release, err error) {
	ctx, call := tracing.Begin(ctx, "resolve release image")
	defer func() { call.End(err) }()
	call.Set(tracing.ImageAttribute, request.Image)
	return r.resolve(ctx, namespace, request)
}

// wanted is the request of a control plane that has no Release yet.
func (r *Resolver) wanted(key types.NamespacedName) (Request, tracing.Origin, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known[key]
	return e.request, e.origin, ok && e.answer.Release == nil
}

// answer keeps an answer, unless the control plane wants something else by now, and reports whether it is news.
func (r *Resolver) answer(key types.NamespacedName, request Request, answer Answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known[key]
	if !ok || e.request != request {
		return false // Whoever asked for something else has put the key into the queue again.
	}
	r.known[key] = entry{request: request, answer: answer, origin: e.origin}
	if answer.Err == nil {
		r.queue.Forget(key)
		return true
	}
	r.queue.AddRateLimited(key)
	return e.answer.Err == nil || Explain(e.answer.Err) != Explain(answer.Err)
}

// send wakes the reconciler.
func (r *Resolver) send(ctx context.Context, key types.NamespacedName) {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	select {
	case r.events <- event.GenericEvent{Object: controlPlane}:
	case <-ctx.Done():
	}
}
