// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
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
