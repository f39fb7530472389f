// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// Nodes finds Nodes of installed clusters and gives them provider IDs.
type Nodes interface {
	// Named reads a Node; nil when there is none, or no connection. A Node without a provider ID wakes the watcher, now and later, with a
	// request for the Cluster's namespace and the Node's name; the ClusterCache wakes it when there is a connection.
	Named(ctx context.Context, cluster client.ObjectKey, name string, watcher clustercache.WatcherOptions) (*corev1.Node, error)
	// SetProviderID sets the provider ID of a Node as it was read.
	SetProviderID(ctx context.Context, cluster client.ObjectKey, node *corev1.Node, id string) error
}

var _ Nodes = Cached{}

// Named reads from the connection's cache, which ends with the connection, and the watch with it: every call renews it. Only clusters whose
// Machines wait for their Nodes get this cache.
func (c Cached) Named(
	ctx context.Context, cluster client.ObjectKey, name string, watcher clustercache.WatcherOptions,
) (*corev1.Node, error) {
	watcher.Kind = &corev1.Node{}
	watcher.EventHandler = handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if node, ok := o.(*corev1.Node); !ok || node.Spec.ProviderID != "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: o.GetName()}}}
	})
	err := c.Cache.Watch(ctx, cluster, clustercache.NewWatcher(watcher))
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch Nodes of Cluster %s: %w", cluster, err)
	}
	remote, err := c.Cache.GetReader(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	node := &corev1.Node{}
	if err := remote.Get(ctx, client.ObjectKey{Name: name}, node); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Node %s of Cluster %s: %w", name, cluster, err)
	}
	return node, nil
}

// SetProviderID writes with the version that was read: a Node of the same name that came meanwhile is another host's.
func (c Cached) SetProviderID(ctx context.Context, cluster client.ObjectKey, node *corev1.Node, id string) error {
	remote, err := c.Cache.GetUncachedClient(ctx, cluster)
	if err != nil {
		return fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	changed := node.DeepCopy()
	changed.Spec.ProviderID = id
	if err := remote.Patch(ctx, changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set spec.providerID of Node %s of Cluster %s: %w", node.Name, cluster, err)
	}
	return nil
}
