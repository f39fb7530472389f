// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capi-openshift/agent-providers/controlplane/internal/connection"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// Nodes finds Nodes of installed clusters and gives them provider IDs.
type Nodes interface {
	// Named reads a Node; nil when there is none, or no connection. A Node without a provider ID triggers a reconcile, now and later, of the
	// Cluster's namespace and the Node's name; the ClusterCache triggers one when there is a connection.
	Named(ctx context.Context, cluster client.ObjectKey, name string, controller Controller) (*corev1.Node, error)
	// SetProviderID sets the provider ID of a Node as it was read.
	SetProviderID(ctx context.Context, cluster client.ObjectKey, node *corev1.Node, id string) error
}

// Named adds Nodes to the connection's cache: only clusters whose Machines wait for their Nodes get this cache.
func (c Cached) Named(ctx context.Context, cluster client.ObjectKey, name string, controller Controller) (*corev1.Node, error) {
	watch := connection.NewWatcher("nodes", &corev1.Node{}, controller, withoutProviderID(cluster))
	remote, err := c.watched(ctx, cluster, "Nodes", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	return readNode(ctx, remote, cluster, name)
}

// withoutProviderID maps a Node that has no provider ID to its name in the Cluster's namespace.
func withoutProviderID(cluster client.ObjectKey) func(client.Object) []reconcile.Request {
	return func(o client.Object) []reconcile.Request {
		if node, ok := o.(*corev1.Node); !ok || node.Spec.ProviderID != "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: o.GetName()}}}
	}
}

// SetProviderID writes with the version that was read: a Node of the same name that came meanwhile is another host's.
func (c Cached) SetProviderID(ctx context.Context, cluster client.ObjectKey, node *corev1.Node, id string) error {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return err
	}
	changed := node.DeepCopy()
	changed.Spec.ProviderID = id
	if err := remote.Patch(ctx, changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set spec.providerID of Node %s of Cluster %s: %w", node.Name, cluster, err)
	}
	return nil
}

// readNode reads a Node of an installed cluster; nil when there is none.
func readNode(ctx context.Context, remote client.Reader, cluster client.ObjectKey, name string) (*corev1.Node, error) {
	node, err := kube.GetOrNil[corev1.Node](ctx, remote, client.ObjectKey{Name: name})
	if err != nil {
		return nil, fmt.Errorf("ask Cluster %s: %w", cluster, err)
	}
	return node, nil
}
