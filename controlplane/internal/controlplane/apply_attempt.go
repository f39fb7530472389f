// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

// startRetry asks for the next attempt. Counting up and removing the user's annotation is one patch: no crash can count twice.
func (r *Reconciler) startRetry(ctx context.Context, s *scope, d decision) error {
	if !d.startRetry {
		return nil
	}
	attempt, err := strconv.Atoi(plan.Attempt(s.controlPlane))
	if err != nil {
		return fmt.Errorf("annotation %s of OpenshiftAssistedControlPlane %s is not a number: %w",
			controlplanev1.InstallAttemptAnnotation, klog.KObj(s.controlPlane), err)
	}
	next := strconv.Itoa(attempt + 1)
	// A copy: the pass goes on with what it has observed, and the patch is an event.
	written, err := r.lockedPatch(ctx, s.controlPlane.DeepCopy(), map[string]any{"annotations": map[string]any{
		controlplanev1.InstallAttemptAnnotation:    next,
		controlplanev1.RetryInstallationAnnotation: nil,
	}}, nil)
	if written {
		r.event(s, corev1.EventTypeNormal, controlplanev1.EventRetryStarted, "Retry", "Starting attempt %s of the installation", next)
	}
	return err
}

// cleanUpAttempt removes the objects of an earlier attempt. Machines come first: once the AgentClusterInstall is gone, nobody knows which
// workers were part of the installation.
func (r *Reconciler) cleanUpAttempt(ctx context.Context, s *scope, d decision) error {
	if !d.retrying {
		return nil
	}
	if err := r.deleteMachines(ctx, s, d.staleMachines, "its installation failed and is retried"); err != nil {
		return err
	}
	return r.deleteInstall(ctx, s)
}
