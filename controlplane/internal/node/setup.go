// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(
	ctx context.Context, mgr ctrl.Manager, clusters clustercache.ClusterCache, options controller.Options,
) error {
	b := capicontrollerutil.NewControllerManagedBy(mgr, ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)).
		For(&clusterv1.Machine{}, builder.WithPredicates(predicate.NewPredicateFuncs(isWaiting))).
		Named(controllerName).
		WatchesRawSource(clusters.GetClusterSource(controllerName, r.waiting))
	c, err := manager.Build(ctx, b, options, r)
	if err != nil {
		return fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	r.controller = c
	return nil
}

// isWaiting is waits for a predicate.
func isWaiting(o client.Object) bool {
	m, ok := o.(*clusterv1.Machine)
	return ok && waits(m)
}

// waits reports whether a Machine of infrastructure other than Metal3 has its provider ID and no Node yet.
func waits(m *clusterv1.Machine) bool {
	return m.Spec.ProviderID != "" && !m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() &&
		m.Spec.Bootstrap.ConfigRef.Kind == "OpenshiftAssistedConfig" && m.Spec.Bootstrap.ConfigRef.APIGroup == bootstrapv1.GroupVersion.Group &&
		!metal3.IsMachineRef(m.Spec.InfrastructureRef)
}

// waiting are the Machines of a Cluster that wait for their Nodes: the Cluster has just been connected.
func (r *Reconciler) waiting(ctx context.Context, cluster client.Object) []reconcile.Request {
	return kube.Requests(
		ctx, r.Client, &clusterv1.MachineList{}, waits,
		client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()},
	)
}
