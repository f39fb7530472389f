// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/served"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(
	ctx context.Context, mgr ctrl.Manager, clusters clustercache.ClusterCache, options controller.Options,
) error {
	r.reported, r.now = lru.New(reportedSize), time.Now
	b := capicontrollerutil.NewControllerManagedBy(mgr, ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)).
		For(&clusterv1.Cluster{}).
		Named(controllerName).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), nodes).
		// One that is no longer paused, but none of the changes of its status.
		Watches(&controlplanev1.OpenshiftAssistedControlPlane{}, handler.EnqueueRequestsFromMapFunc(served.ByLabel), served.Resumed).
		WatchesRawSource(clusters.GetClusterSource(controllerName, itself))
	c, err := manager.Build(ctx, b, options, r)
	if err != nil {
		return fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	r.controller = c
	return nil
}

// nodes lets the events through by which a Machine gets its Node: a request that came before is approved then.
var nodes = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return nodeOf(e.Object) != "" },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return nodeOf(e.ObjectNew) != "" && nodeOf(e.ObjectOld) != nodeOf(e.ObjectNew)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func nodeOf(o client.Object) string {
	if m, ok := o.(*clusterv1.Machine); ok {
		return m.Status.NodeRef.Name
	}
	return ""
}

// ofMachine maps a Machine to its Cluster.
func ofMachine(_ context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}}}
}

// itself maps a Cluster to itself.
func itself(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}
