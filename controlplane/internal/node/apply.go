// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// apply gives the Node its provider ID. A Node that was changed or deleted since is looked at again: its change triggers the next pass.
func (r *Reconciler) apply(ctx context.Context, s *scope, d decision) error {
	if d.providerID == "" {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info(
		"Setting the provider ID of a Node", "Cluster", klog.KRef(s.cluster.Namespace, s.cluster.Name), "Node", s.node.Name,
		"providerID", d.providerID,
	)
	err := r.Nodes.SetProviderID(ctx, s.cluster, s.node, d.providerID)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
