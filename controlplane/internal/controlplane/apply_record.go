// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// record writes all that the pass has to remember into annotations of the control plane, in one patch, unless the control plane has changed
// since it was read: an old pass does not undo a newer one. What must not begin before it is remembered comes after it. The pass goes on
// with what it has observed, and the patch triggers the next one.
func (r *Reconciler) record(ctx context.Context, v *view.View, d decision, o *outcomes) error {
	changes := recordsOf(d)
	retry, err := r.retryRecords(ctx, v, d.attempt)
	maps.Copy(changes, retry)
	if err != nil || len(changes) == 0 {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Recording on the control plane", "annotations", changes)
	cp := v.ControlPlane.DeepCopy()
	written, err := r.lockedPatch(ctx, cp, map[string]any{"annotations": changes}, nil)
	if !written {
		o.unrecorded = true
		return err
	}
	o.written = cp.ResourceVersion
	countRecords(v, d, retry != nil)
	if retry != nil {
		r.tellRetry(v, d.attempt, cp.Annotations[controlplanev1.InstallAttemptAnnotation])
	}
	return nil
}

// recordsOf are the annotations to write, and those to remove, whose value is nil.
func recordsOf(d decision) map[string]any {
	changes := map[string]any{}
	set := func(annotation, value string) {
		if value != "" {
			changes[annotation] = value
		}
	}
	setOrRemove := func(annotation string, value *string) {
		switch {
		case value == nil:
		case *value == "":
			changes[annotation] = nil
		default:
			changes[annotation] = *value
		}
	}
	set(controlplanev1.InstallAttemptAnnotation, d.attempt.Restore)
	// So that the wait for the next attempt outlives the manager.
	set(controlplanev1.InstallationFailedAnnotation, d.attempt.Retry.Record)
	// Before status says that the cluster is installed: a move may follow at once.
	set(controlplanev1.InstalledClusterAnnotation, d.install.record)
	set(controlplanev1.NextMachineAnnotation, d.machines.NextNumber)
	setOrRemove(controlplanev1.InstallationStartedAnnotation, d.install.start)
	switch {
	case d.remedy.Record != nil:
		set(controlplanev1.RemediationInProgressAnnotation, d.remedy.Record.String())
	case d.remedy.Done:
		changes[controlplanev1.RemediationInProgressAnnotation] = nil
	}
	// Which release the cluster was seen to be asked for, and that it was asked again for the user.
	setOrRemove(controlplanev1.RequestedReleaseAnnotation, d.upgrade.Record)
	setOrRemove(controlplanev1.KnownRisksAnnotation, d.upgrade.Risks)
	if d.upgrade.EndRetry {
		changes[controlplanev1.RetryUpgradeAnnotation] = nil
	}
	return changes
}

// retryRecords are the annotations by which the next attempt begins; nil when none does. Counting up and removing the user's annotation is
// one patch: no crash can count twice.
func (r *Reconciler) retryRecords(ctx context.Context, v *view.View, d plan.AttemptDecision) (map[string]any, error) {
	if !d.Start {
		return nil, nil
	}
	if !d.Asked || d.Lost != "" {
		if confirmed, err := r.confirmOver(ctx, v); err != nil || !confirmed {
			return nil, err
		}
	}
	attempt, err := strconv.Atoi(view.Attempt(v.ControlPlane))
	if err != nil {
		return nil, fmt.Errorf("annotation %s of OpenshiftAssistedControlPlane %s is not a number: %w",
			controlplanev1.InstallAttemptAnnotation, klog.KObj(v.ControlPlane), err)
	}
	changes := map[string]any{
		controlplanev1.InstallAttemptAnnotation: strconv.Itoa(attempt + 1), controlplanev1.RetryInstallationAnnotation: nil,
		controlplanev1.InstallationFailedAnnotation: nil,
	}
	switch {
	case d.Asked:
		changes[controlplanev1.LostInstallationsAnnotation] = nil
	case d.Lost != "":
		changes[controlplanev1.LostInstallationsAnnotation] = plan.LostOf(v.ControlPlane).Again(v.Now)
	}
	return changes, nil
}

// tellRetry records events about the attempt that begins.
func (r *Reconciler) tellRetry(v *view.View, d plan.AttemptDecision, next string) {
	if d.Lost != "" {
		r.event(v, corev1.EventTypeWarning, controlplanev1.EventInstallObjectsLost, "Retry",
			"%s vanished during attempt %s of the installation, which is given up", d.Lost, view.Attempt(v.ControlPlane))
	}
	r.event(v, corev1.EventTypeNormal, controlplanev1.EventRetryStarted, "Retry", "Starting attempt %s of the installation",
		attemptOf(v.ControlPlane, next))
}
