// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"errors"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// maxDeletionFailures is how often BMO fails to free a host whose BareMetalHost is deleted, before it goes on without (M3-56). For a host
// that goes back to the pool there is no such limit.
const maxDeletionFailures = 3

// deprovision has Ironic tear the host down and clean it. Both need the BMC, so a dead one keeps the host in this state, and whoever waits
// for it: the Metal3Machine keeps its finalizer (M3-56).
func (p *hostPass) deprovision(context.Context) (time.Duration, error) {
	kind, problem := p.teardownProblem()
	switch {
	case p.faults.neverDeprovision:
		return 0, nil
	case p.metal.stuck && p.untilRetry() > 0:
		return p.untilRetry(), nil
	case p.metal.stuck:
		// The next attempt clears the error, and takes as long as the first.
		p.clearError()
		p.metal.stuck, p.metal.since = false, p.now
		return p.Durations.Deprovision, nil
	case p.remaining(p.Durations.Deprovision) > 0:
		return p.remaining(p.Durations.Deprovision), nil
	case problem != "":
		wait := p.fail(kind, problem)
		p.onceWritten(func() { p.metal.stuck = true })
		return p.giveUp(p.afterFailedTeardown(kind), wait), nil
	}
	status := &p.host.Status
	status.Provisioning.Image, status.Provisioning.CustomDeploy, status.Provisioning.RootDeviceHints = bmov1alpha1.Image{}, nil, nil
	status.ErrorCount = 0
	p.onceWritten(func() {
		if p.Deprovisioned != nil {
			cleaned := p.host.Spec.AutomatedCleaningMode != bmov1alpha1.CleaningModeDisabled
			p.Deprovisioned(client.ObjectKeyFromObject(p.host), cleaned)
		}
	})
	if !p.host.DeletionTimestamp.IsZero() {
		return p.enter(p.stateAfterHost()), nil
	}
	return p.enter(bmov1alpha1.StateAvailable), nil
}

// teardownProblem is what keeps Ironic from tearing the host down, and the kind of error as which BMO reports it: a node that Ironic cannot
// register any more, or one whose power it cannot cut.
func (p *hostPass) teardownProblem() (bmov1alpha1.ErrorType, string) {
	if p.faults.registration != "" {
		return bmov1alpha1.RegistrationError, p.faults.registration
	}
	return bmov1alpha1.ProvisioningError, p.faults.power
}

func (p *hostPass) afterFailedTeardown(kind bmov1alpha1.ErrorType) bmov1alpha1.ProvisioningState {
	if kind == bmov1alpha1.RegistrationError {
		return bmov1alpha1.StateDeleting
	}
	return bmov1alpha1.StatePoweringOffBeforeDelete
}

// giveUp takes a host whose BareMetalHost is deleted further, although it was not freed, once that has failed often enough. The host may
// run on then.
func (p *hostPass) giveUp(next bmov1alpha1.ProvisioningState, wait time.Duration) time.Duration {
	if p.host.DeletionTimestamp.IsZero() || p.host.Status.ErrorCount <= maxDeletionFailures {
		return wait
	}
	return p.enter(next)
}

func (p *hostPass) powerOffBeforeDelete(context.Context) (time.Duration, error) {
	if p.copyRootDeviceHints() {
		return 0, nil
	}
	kind, problem := p.teardownProblem()
	if kind == bmov1alpha1.ProvisioningError {
		kind = bmov1alpha1.PowerManagementError
	}
	switch {
	case problem != "" && p.metal.stuck && p.untilRetry() > 0:
		return p.untilRetry(), nil
	case problem != "":
		wait := p.fail(kind, problem)
		p.onceWritten(func() { p.metal.stuck = true })
		return p.giveUp(bmov1alpha1.StateDeleting, wait), nil
	}
	p.host.Status.PoweredOn = false
	p.onceWritten(func() {
		if p.PowerOff != nil {
			p.PowerOff(client.ObjectKeyFromObject(p.host))
		}
	})
	return p.enter(bmov1alpha1.StateDeleting), nil
}

func (p *hostPass) delete(ctx context.Context) (time.Duration, error) {
	if err := errors.Join(p.releaseCredentials(ctx), p.releaseHardware(ctx)); err != nil {
		return 0, err
	}
	p.forget(p.host.UID)
	controllerutil.RemoveFinalizer(p.host, bmov1alpha1.BareMetalHostFinalizer)
	return 0, nil
}
