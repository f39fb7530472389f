// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"sync"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Faults makes hosts fail, at run time and from any goroutine. A host is named by the namespace and name of its BareMetalHost,
// which need not exist yet. The messages appear in the host's status as they are given.
type Faults struct {
	mu    sync.Mutex
	hosts map[types.NamespacedName]*hostFaults
	// wake holds at most one token: "look at every host again". An unread token stands for later changes as well, so a full
	// channel loses nothing.
	wake chan event.TypedGenericEvent[*bmov1alpha1.BareMetalHost]
	// back is closed when Metal3 is back; nil while it is there.
	back chan struct{}
}

// hostFaults are the faults of one host; an empty message means none.
type hostFaults struct {
	neverProvision, neverDeprovision   bool
	registration, inspection, power    string
	provisioning                       string
	provisioningTimes, provisioningHit int
}

func newFaults() *Faults {
	return &Faults{
		hosts: map[types.NamespacedName]*hostFaults{},
		wake:  make(chan event.TypedGenericEvent[*bmov1alpha1.BareMetalHost], 1),
	}
}

// NeverProvision keeps the host in the state provisioning, without an error.
func (f *Faults) NeverProvision(host types.NamespacedName) {
	f.set(host, func(h *hostFaults) { h.neverProvision = true })
}

// NeverDeprovision keeps the host in the state deprovisioning, without an error.
func (f *Faults) NeverDeprovision(host types.NamespacedName) {
	f.set(host, func(h *hostFaults) { h.neverDeprovision = true })
}

// ProvisioningError makes the next times attempts to provision the host fail; zero or less means all of them (M3-62).
func (f *Faults) ProvisioningError(host types.NamespacedName, message string, times int) {
	f.set(host, func(h *hostFaults) { h.provisioning, h.provisioningTimes, h.provisioningHit = message, times, 0 })
}

// RegistrationError makes the host's BMC refuse to talk: a new host stays in registering, a provisioned one stays provisioned
// with the error, and one that is freed stays in deprovisioning (M3-56, M3-60, M3-63).
func (f *Faults) RegistrationError(host types.NamespacedName, message string) {
	f.set(host, func(h *hostFaults) { h.registration = message })
}

// InspectionError makes the host's inspection fail (M3-60).
func (f *Faults) InspectionError(host types.NamespacedName, message string) {
	f.set(host, func(h *hostFaults) { h.inspection = message })
}

// PowerFailure makes every change of the host's power state fail, so that the host cannot be freed either (M3-56, M3-60, M3-63).
func (f *Faults) PowerFailure(host types.NamespacedName, message string) {
	f.set(host, func(h *hostFaults) { h.power = message })
}

// Clear ends all faults of the host. An error that the host already shows goes away at its next attempt.
func (f *Faults) Clear(host types.NamespacedName) {
	f.set(host, func(h *hostFaults) { *h = hostFaults{} })
}

// Away takes Metal3's controllers away, as if their pods were gone, until it is called with false. Objects and hosts stay as they are. Who
// serves Metal3's webhooks asks IsAway.
func (f *Faults) Away(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case on && f.back == nil:
		f.back = make(chan struct{})
	case !on && f.back != nil:
		close(f.back)
		f.back = nil
	}
}

// IsAway tells whether Metal3 is away.
func (f *Faults) IsAway() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.back != nil
}

// awaitReturn returns when Metal3 is there, or ctx has ended.
func (f *Faults) awaitReturn(ctx context.Context) error {
	f.mu.Lock()
	back := f.back
	f.mu.Unlock()
	if back == nil {
		return nil
	}
	select {
	case <-back:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whilePresent begins a pass of a controller once Metal3 is there: what it is woken for meanwhile is not lost, as it is not when pods start
// again and list everything.
func (f *Faults) whilePresent(controller reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if err := f.awaitReturn(ctx); err != nil {
			return ctrl.Result{}, err
		}
		return controller.Reconcile(ctx, req)
	})
}

func (f *Faults) set(host types.NamespacedName, change func(*hostFaults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts[host] == nil {
		f.hosts[host] = &hostFaults{}
	}
	change(f.hosts[host])
	select {
	case f.wake <- event.TypedGenericEvent[*bmov1alpha1.BareMetalHost]{Object: &bmov1alpha1.BareMetalHost{}}:
	default:
	}
}

// of returns a copy of the host's faults.
func (f *Faults) of(host types.NamespacedName) hostFaults {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts[host] == nil {
		return hostFaults{}
	}
	return *f.hosts[host]
}

// provisioningFails tells whether the next attempt to provision the host fails.
func (h *hostFaults) provisioningFails() bool {
	return h.provisioning != "" && (h.provisioningTimes <= 0 || h.provisioningHit < h.provisioningTimes)
}

// provisioningFailed counts a failed attempt.
func (f *Faults) provisioningFailed(host types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts[host] != nil {
		f.hosts[host].provisioningHit++
	}
}
