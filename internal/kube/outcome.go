// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Outcome says how the writes of a pass about one subject ended. Its zero value says that nothing was written: there was nothing to write,
// or the pass had stopped before.
type Outcome struct {
	state outcome
	err   error
}

type outcome int

const (
	untried outcome = iota
	done
	conflict
	refused
	failed
	awaited
)

// Awaited is the outcome of what cannot be written yet. Something that is watched triggers the pass that can.
func Awaited() Outcome { return Outcome{state: awaited} }

// OutcomeOf returns the outcome that the error of a write means.
func OutcomeOf(err error) Outcome {
	var refusal Refusal
	switch {
	case err == nil:
		return Outcome{state: done}
	case onlyConflicts(err):
		return Outcome{state: conflict, err: err}
	case errors.As(err, &refusal), denied(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return Outcome{state: refused, err: err}
	default:
		return Outcome{state: failed, err: err}
	}
}

// Done reports whether everything was written.
func (o Outcome) Done() bool { return o.state == done }

// Waits reports whether it cannot be written yet.
func (o Outcome) Waits() bool { return o.state == awaited }

// Stops reports whether the steps that follow have to wait, because the write did not succeed.
func (o Outcome) Stops() bool { return o.state > done }

// Outdated reports whether nothing was written because the object had changed after it was read. What was decided is decided anew by the
// next pass, which the change triggers.
func (o Outcome) Outdated() bool { return o.state == conflict }

// Refusal is what the API server says of an object that it does not take; nil when it refused nothing.
func (o Outcome) Refusal() error {
	if o.state != refused {
		return nil
	}
	return o.err
}

// Err is what the workqueue has to know, which tries again later. A conflict is not an error: the object was changed after it was read, and
// that change triggers the next pass. So what is written under its resource version or UID has to be watched.
func (o Outcome) Err() error {
	if o.state == conflict {
		return nil
	}
	return o.err
}

// IsConflict reports whether an object was changed, or replaced, between its read and its write. A webhook may refuse an object with the
// code of a conflict too, as that of AgentClusterInstalls does with platforms: it accepts no second try either.
func IsConflict(err error) bool {
	return apierrors.IsConflict(err) && !denied(err) && !quotaIsBusy(err)
}

// denied reports whether a webhook or an admission policy refused the request. API servers tell it in these words alone: the code is
// whatever the webhook or the policy says.
func denied(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return strings.Contains(status.Status().Message, "denied the request") || DeniedByPolicy(err)
}

// DeniedByPolicy reports whether an admission policy refused the request, with whatever code. A policy may be changed at any time, and no
// event tells that.
func DeniedByPolicy(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "denied request:")
}

// quotaIsBusy reports whether the API server could not count an object against a quota because it was counting others, which it tells with
// the code of a conflict. Nothing was created and nothing that is watched has changed, so it has to be tried again.
func quotaIsBusy(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "resourcequotas"
}

// onlyConflicts reports whether an error says nothing but that somebody changed the objects between their read and their write.
func onlyConflicts(err error) bool {
	switch joined := err.(type) { //nolint:errorlint // Each error that another one wraps is asked by itself.
	case interface{ Unwrap() []error }:
		return allConflicts(joined.Unwrap())
	case kerrors.Aggregate:
		return allConflicts(joined.Errors())
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return onlyConflicts(wrapped)
	}
	return IsConflict(err)
}

func allConflicts(errs []error) bool {
	for _, err := range errs {
		if !onlyConflicts(err) {
			return false
		}
	}
	return len(errs) > 0
}
