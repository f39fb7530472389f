// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strconv"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// recordStart remembers on the control plane that an installation begins, or that it has not begun after all.
func (r *Reconciler) recordStart(ctx context.Context, v *view.View, d installDecision) error {
	if d.start == nil {
		return nil
	}
	var value any // A merge patch removes what is null.
	if *d.start != "" {
		value = *d.start
	}
	ctrl.LoggerFrom(ctx).Info("Recording the start of the installation", "record", *d.start)
	_, err := r.annotate(ctx, v, map[string]any{controlplanev1.InstallationStartedAnnotation: value})
	return err
}

// confirmOver reads without the cache whether what the pass misses is gone, and whether the Cluster still wants it: a move pauses the
// Cluster first. What the cache does not show yet triggers a pass later. The control plane itself needs no such look: it is only written as
// it was read.
func (r *Reconciler) confirmOver(ctx context.Context, v *view.View) (bool, error) {
	cluster := &clusterv1.Cluster{}
	exists, err := kube.Get(ctx, r.APIReader, v.ClusterKey(), cluster)
	if err != nil || !exists || cluster.UID != v.Cluster.UID || !cluster.DeletionTimestamp.IsZero() ||
		annotations.IsPaused(cluster, v.ControlPlane) {
		return false, err
	}
	var missed []client.Object
	if v.Install.ClusterDeployment == nil {
		missed = append(missed, &hivev1.ClusterDeployment{})
	}
	if v.Install.AgentClusterInstall == nil {
		missed = append(missed, &hiveext.AgentClusterInstall{})
	}
	key := client.ObjectKeyFromObject(v.ControlPlane)
	for _, o := range missed {
		if exists, err := kube.Get(ctx, r.APIReader, key, o); err != nil || exists {
			return false, err
		}
	}
	return true, nil
}

// restoreAttempt writes the number of the attempt that runs to a control plane that has lost it.
func (r *Reconciler) restoreAttempt(ctx context.Context, v *view.View, d plan.AttemptDecision) error {
	if d.Restore == "" {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Restoring the number of the attempt", "attempt", d.Restore)
	_, err := r.annotate(ctx, v, map[string]any{controlplanev1.InstallAttemptAnnotation: d.Restore})
	return err
}

// recordFailure remembers since when the attempt has failed, so that the wait for the next one outlives the manager.
func (r *Reconciler) recordFailure(ctx context.Context, v *view.View, d plan.AttemptDecision) error {
	if d.Retry.Record == "" {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Recording the failure of the installation", "record", d.Retry.Record)
	_, err := r.annotate(ctx, v, map[string]any{controlplanev1.InstallationFailedAnnotation: d.Retry.Record})
	return err
}

// startRetry asks for the next attempt. Counting up and removing the user's annotation is one patch: no crash can count twice.
func (r *Reconciler) startRetry(ctx context.Context, v *view.View, d plan.AttemptDecision) error {
	if !d.Start {
		return nil
	}
	if !d.Asked || d.Lost != "" {
		if confirmed, err := r.confirmOver(ctx, v); err != nil || !confirmed {
			return err
		}
	}
	attempt, err := strconv.Atoi(view.Attempt(v.ControlPlane))
	if err != nil {
		return fmt.Errorf("annotation %s of OpenshiftAssistedControlPlane %s is not a number: %w",
			controlplanev1.InstallAttemptAnnotation, klog.KObj(v.ControlPlane), err)
	}
	next := strconv.Itoa(attempt + 1)
	changes := map[string]any{ // A merge patch removes what is null.
		controlplanev1.InstallAttemptAnnotation: next, controlplanev1.RetryInstallationAnnotation: nil,
		controlplanev1.InstallationFailedAnnotation: nil,
	}
	switch {
	case d.Asked:
		changes[controlplanev1.LostInstallationsAnnotation] = nil
	case d.Lost != "":
		changes[controlplanev1.LostInstallationsAnnotation] = plan.LostOf(v.ControlPlane).Again(v.Now)
	}
	written, err := r.annotate(ctx, v, changes)
	if written && d.Lost != "" {
		r.event(v, corev1.EventTypeWarning, controlplanev1.EventInstallObjectsLost, "Retry",
			"%s vanished during attempt %d of the installation, which is given up", d.Lost, attempt)
	}
	if written {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventRetryStarted, "Retry", "Starting attempt %s of the installation",
			attemptOf(v.ControlPlane, next))
	}
	return err
}

// cleanUpAttempt removes the objects of an earlier attempt. Machines come first: once the AgentClusterInstall is gone, nobody knows which
// workers were part of the installation.
func (r *Reconciler) cleanUpAttempt(ctx context.Context, v *view.View, d plan.AttemptDecision) error {
	if !d.Retrying {
		return nil
	}
	if err := r.deleteMachines(ctx, v, d.Stale, "its installation failed or was given up, and the next one begins"); err != nil {
		return err
	}
	return r.deleteInstall(ctx, v, "the next attempt begins")
}
