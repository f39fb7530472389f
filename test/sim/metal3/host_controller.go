// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// hostWorkers is how many hosts BMO looks after at once on a machine with four cores: as many as it has cores, but from 2 to 8.
const hostWorkers = 4

// hostReconciler plays baremetal-operator with an Ironic behind it.
type hostReconciler struct {
	*config

	mu sync.Mutex
	// machines is what Ironic would know of each host: it is not in the API, and is lost with the process.
	machines map[types.UID]*bareMetal
}

// bareMetal is the part of a host's state that is not in its status.
type bareMetal struct {
	// state and since tell when the host was first seen in its present state.
	state bmov1alpha1.ProvisioningState
	since time.Time
	// input is the generation and the annotations at the last pass: a change of either makes BMO look at once (M3-62).
	input string
	// retryAt is when a failed operation is tried again unless the input changes before.
	retryAt time.Time
	// failed counts the failed attempts to provision since the last success.
	failed int
	// stuck is whether the operation of the present state has failed and waits for its next attempt.
	stuck bool
	// powerFailing is whether the BMC's power control failed when it was last looked at.
	powerFailing bool
	// powerChanged is when its power was switched last.
	powerChanged time.Time
}

// hostPass is one pass over one host. It changes the host in memory; Reconcile writes what differs.
type hostPass struct {
	*hostReconciler
	host   *bmov1alpha1.BareMetalHost
	metal  *bareMetal
	faults hostFaults
	now    time.Time
	// poked is whether somebody changed the host's spec or annotations since the last pass.
	poked bool
	// written is what happens to the machine when the pass's write succeeds. A pass on a stale cache is repeated, and must not
	// count twice.
	written []func()
}

func setupHosts(mgr ctrl.Manager, cfg *config) error {
	r := &hostReconciler{config: cfg, machines: map[types.UID]*bareMetal{}}
	faults := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ *bmov1alpha1.BareMetalHost) []reconcile.Request {
		return r.allHosts(ctx)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerNamePrefix + "host").
		For(&bmov1alpha1.BareMetalHost{}).
		WatchesRawSource(source.TypedChannel(cfg.faults.wake, faults)).
		WithOptions(hostOptions(cfg)).
		Complete(cfg.faults.whilePresent(r))
}

// hostOptions let several hosts go on at once, as BMO does: with one worker, hosts that fail again and again keep the others waiting.
func hostOptions(cfg *config) controller.Options {
	options := controllerOptions(cfg)
	options.MaxConcurrentReconciles = hostWorkers
	return options
}

func (r *hostReconciler) allHosts(ctx context.Context) []reconcile.Request {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := r.client.List(ctx, hosts); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the BareMetalHosts after a change of faults")
		return nil
	}
	requests := make([]reconcile.Request, len(hosts.Items))
	for i := range hosts.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&hosts.Items[i])
	}
	return requests
}

// Reconcile takes a host one write further. The event of that write brings the next pass.
func (r *hostReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	before := &bmov1alpha1.BareMetalHost{}
	if err := r.client.Get(ctx, req.NamespacedName, before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := before.Annotations[bmov1alpha1.PausedAnnotation]; paused || movedAway(before) {
		return ctrl.Result{}, nil
	}
	p := r.newPass(before)
	wait, err := p.run(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	p.setConditions()
	if err := p.write(ctx, before); err != nil {
		if apierrors.IsConflict(err) {
			// The cache was behind: the next pass decides on what is there now.
			return ctrl.Result{RequeueAfter: firstBackoff}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, follow := range p.written {
		follow()
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

func (r *hostReconciler) newPass(host *bmov1alpha1.BareMetalHost) *hostPass {
	r.mu.Lock()
	defer r.mu.Unlock()
	metal := r.machines[host.UID]
	if metal == nil {
		metal = &bareMetal{}
		r.machines[host.UID] = metal
	}
	p := &hostPass{
		hostReconciler: r, host: host.DeepCopy(), metal: metal,
		faults: r.config.faults.of(client.ObjectKeyFromObject(host)), now: r.Clock.Now(),
	}
	if state := host.Status.Provisioning.State; metal.state != state || metal.since.IsZero() {
		metal.state, metal.since, metal.stuck = state, p.now, false
	}
	// Maps are printed in the order of their keys.
	input := fmt.Sprint(host.Generation, host.Annotations)
	p.poked = metal.input != input
	metal.input = input
	if p.poked {
		metal.powerFailing = p.faults.power != ""
	}
	return p
}

func (r *hostReconciler) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.machines, uid)
}

// write updates metadata and spec, or status; a pass changes one of them.
func (p *hostPass) write(ctx context.Context, before *bmov1alpha1.BareMetalHost) error {
	if !unchanged(before, p.host) {
		if err := p.client.Update(ctx, p.host.DeepCopy()); err != nil {
			return fmt.Errorf("update BareMetalHost %s: %w", client.ObjectKeyFromObject(p.host), err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(before.Status, p.host.Status) {
		return nil
	}
	if err := p.client.Status().Update(ctx, p.host); err != nil {
		return fmt.Errorf("update the status of BareMetalHost %s: %w", client.ObjectKeyFromObject(p.host), err)
	}
	return nil
}

// remaining returns how much of an operation's time is left in the present state, zero when it is over.
func (p *hostPass) remaining(operation time.Duration) time.Duration {
	return max(0, p.metal.since.Add(operation).Sub(p.now))
}

// untilRetry returns how long a failed operation still waits for its next attempt.
func (p *hostPass) untilRetry() time.Duration {
	if p.poked {
		return 0
	}
	return max(0, p.metal.retryAt.Sub(p.now))
}

// fail reports an error of the host and plans the next attempt.
func (p *hostPass) fail(kind bmov1alpha1.ErrorType, message string) time.Duration {
	p.host.Status.OperationalStatus = bmov1alpha1.OperationalStatusError
	p.host.Status.ErrorType, p.host.Status.ErrorMessage = kind, message
	p.host.Status.ErrorCount++
	p.onceWritten(func() { p.metal.retryAt = p.now.Add(p.Durations.ErrorRetry) })
	return p.Durations.ErrorRetry
}

func (p *hostPass) onceWritten(follow func()) { p.written = append(p.written, follow) }

// clearError ends the present error. The count goes back only when an operation succeeds (M3-60).
func (p *hostPass) clearError() {
	p.host.Status.OperationalStatus = bmov1alpha1.OperationalStatusOK
	p.host.Status.ErrorType, p.host.Status.ErrorMessage = "", ""
}

// enter moves the host to another state, and notes in status.operationHistory when the operation of the former state ended and that of the
// new state began.
func (p *hostPass) enter(state bmov1alpha1.ProvisioningState) time.Duration {
	now := metav1.NewTime(p.now)
	if ended := p.host.OperationMetricForState(p.host.Status.Provisioning.State); ended != nil && !ended.Start.IsZero() {
		ended.End = now
	}
	if begun := p.host.OperationMetricForState(state); begun != nil {
		*begun = bmov1alpha1.OperationMetric{Start: now}
	}
	p.host.Status.Provisioning.State = state
	return 0
}
