// SPDX-License-Identifier: Apache-2.0

// Package workload is the only code of the control plane manager that talks to an installed cluster. Each consumer has an interface of its
// own: Identity, Health, Upgrades, Etcd, ControlPlaneNodes and Credentials are for the controller of control planes, Certificates for the
// one of serving certificates, Nodes for the one of provider IDs. Cached implements them all; workloadtest has a fake of each.
package workload

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/connection"
)

// Cached asks through a ClusterCache, which keeps one connection for each cluster and probes it (CONTRACT CORE-15).
type Cached struct {
	// Cache is the manager's ClusterCache.
	Cache clustercache.ClusterCache
	// Answers remembers what the operators of clusters said, for as long as failed reads are no news.
	Answers *Memory
	// Failures remembers what failed that is not asked through the ClusterCache.
	Failures *Memory
}

var (
	_ Identity          = Cached{}
	_ Health            = Cached{}
	_ Upgrades          = Cached{}
	_ Etcd              = Cached{}
	_ ControlPlaneNodes = Cached{}
	_ Credentials       = Cached{}
	_ Certificates      = Cached{}
	_ Nodes             = Cached{}
)

// Controller is started with watches of installed clusters.
type Controller = clustercache.SourceWatcher[reconcile.Request]

// Subscriber is woken by changes of objects in an installed cluster.
type Subscriber struct {
	// Controller reconciles Request.
	Controller Controller
	Request    reconcile.Request
	// Waits: something is going on, of which every change is to be told at once. Otherwise only changes of ClusterOperators and of the
	// ServiceAccount are, and others when a probe finds them: in about a minute, or ten seconds after a ClusterOperator has changed.
	Waits bool
}

// to is a watch of the objects of a kind that are wanted. One of its name is added to a connection once, and every call says again whether
// somebody waits.
func (s Subscriber) to(name string, kind client.Object, wanted func(client.Object) bool) *connection.Watcher {
	return connection.NewWatcher(name+"/"+s.Request.Name, kind, s.Controller, func(o client.Object) []reconcile.Request {
		if o != nil && !wanted(o) {
			return nil
		}
		return []reconcile.Request{s.Request}
	})
}

// watched reads what the connection keeps. The watch ends with the connection, or when nobody waits: every call renews it. It is nil
// without an error when there is no connection, for which the ClusterCache triggers a reconcile when there is one, and when nothing has
// been read yet, for which the watch does.
func (c Cached) watched(ctx context.Context, cluster client.ObjectKey, what string, watch *connection.Watcher) (client.Reader, error) {
	err := c.Cache.Watch(ctx, cluster, watch)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch %s of Cluster %s: %w", what, cluster, err)
	}
	remote, err := c.Cache.GetReader(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	if watched, ok := remote.(connection.Reader); ok {
		err = watched.Ready(ctx, watch.Object())
	}
	if errors.Is(err, connection.ErrNotRead) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of Cluster %s: %w", what, cluster, err)
	}
	return remote, nil
}

// live asks the cluster's API server itself.
func (c Cached) live(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
	remote, err := c.Cache.GetUncachedClient(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	return remote, nil
}
