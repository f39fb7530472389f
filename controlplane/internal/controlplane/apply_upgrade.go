// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// upgrade writes to the installed cluster what was decided about its release: the answers to gates, and in one write the channel and the
// release that it is asked for. The cluster's version operator upgrades the cluster (DESIGN D28).
func (r *Reconciler) upgrade(ctx context.Context, v *view.View, d plan.UpgradeDecision) error {
	if err := r.recordRequest(ctx, v, d); err != nil {
		return err
	}
	if len(d.Acknowledge) > 0 {
		if err := r.Upgrades.Acknowledge(ctx, v.ClusterKey(), v.ControlPlane.Spec.Upgrade.Acknowledgements); err != nil {
			return err
		}
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventUpgradeAcknowledged, "Upgrade", "Acknowledged in the cluster: %s",
			strings.Join(d.Acknowledge, ", "))
	}
	change := workload.VersionChange{Channel: d.Channel, Release: d.Request}
	if d.Channel == "" && d.Request == (workload.Release{}) {
		return nil
	}
	for _, risk := range v.ControlPlane.Spec.Upgrade.AcceptedRisks {
		change.AcceptedRisks = append(change.AcceptedRisks, risk.Name)
	}
	ctrl.LoggerFrom(ctx).Info("Changing the ClusterVersion", "Cluster", klog.KRef(v.ControlPlane.Namespace, v.ClusterName),
		"channel", d.Channel, "version", d.Request.Version, "image", d.Request.Image)
	written, err := r.Upgrades.ChangeVersion(ctx, v.ClusterKey(), v.Workload.Version.ResourceVersion, change)
	if err != nil || !written {
		return err
	}
	if d.Channel != "" {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventUpgradeChannelSet, "Upgrade", "The cluster looks for updates in channel %s now",
			d.Channel)
	}
	if d.Request != (workload.Release{}) {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventUpgradeRequested, "Upgrade", "Asked the cluster, which runs %s, for %s",
			v.Workload.Version.Desired.Version, d.Request.Version)
	}
	return nil
}

// recordRequest writes to the control plane which release the cluster was seen to be asked for, and removes the annotation by which the
// user has had it asked again.
func (r *Reconciler) recordRequest(ctx context.Context, v *view.View, d plan.UpgradeDecision) error {
	changes := map[string]any{}
	if d.Record != nil {
		changes[controlplanev1.RequestedReleaseAnnotation] = nil
		if *d.Record != "" {
			changes[controlplanev1.RequestedReleaseAnnotation] = *d.Record
		}
	}
	if d.EndRetry {
		changes[controlplanev1.RetryUpgradeAnnotation] = nil
	}
	if len(changes) == 0 {
		return nil
	}
	if _, err := r.annotate(ctx, v, changes); err != nil {
		return fmt.Errorf("record the release that the cluster is asked for: %w", err)
	}
	return nil
}
