// SPDX-License-Identifier: Apache-2.0

// Package workload is the only code of the control plane manager that talks to an installed cluster.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// Clusters answers questions about installed clusters.
type Clusters interface {
	// Answers reports whether the cluster's API server answers a request of a live client now. No connection is an answer, not an error.
	Answers(ctx context.Context, cluster client.ObjectKey) (bool, error)
	// LastAnswer is when the API server last answered a probe; zero if it never has since the manager started.
	LastAnswer(ctx context.Context, cluster client.ObjectKey) time.Time
	// Operators reads the operators of the control plane (OperatorNames) that exist, and lets every later change of one of them wake the
	// subscriber. It is nil without an error when there is no connection; the subscriber is woken by the ClusterCache when there is one.
	Operators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error)
}

// Cached asks through a ClusterCache, which keeps one connection for each cluster and probes it (CONTRACT CORE-15).
type Cached struct {
	// Cache is the manager's ClusterCache.
	Cache clustercache.ClusterCache
}

var _ Clusters = Cached{}

// Answers lists at most one Node, which any OpenShift API server answers and the admin credential may do.
func (c Cached) Answers(ctx context.Context, cluster client.ObjectKey) (bool, error) {
	remote, err := c.Cache.GetUncachedClient(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	if err := remote.List(ctx, &corev1.NodeList{}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("list Nodes of Cluster %s: %w", cluster, err)
	}
	return true, nil
}

// LastAnswer is the time of the last probe that succeeded.
func (c Cached) LastAnswer(ctx context.Context, cluster client.ObjectKey) time.Time {
	return c.Cache.GetHealthCheckingState(ctx, cluster).LastProbeSuccessTime
}

// Operators reads from the connection's cache, which ends with the connection, and the watch with it: every call renews it.
func (c Cached) Operators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error) {
	err := c.Cache.Watch(ctx, cluster, subscriber.watcher())
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch ClusterOperators of Cluster %s: %w", cluster, err)
	}
	remote, err := c.Cache.GetReader(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	operators := map[string]Operator{}
	for _, name := range OperatorNames() {
		operator := &configv1.ClusterOperator{}
		if err := remote.Get(ctx, client.ObjectKey{Name: name}, operator); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read ClusterOperator %s of Cluster %s: %w", name, cluster, err)
		}
		operators[name] = operatorOf(operator)
	}
	return operators, nil
}

// Fake answers what it is told, for tests.
type Fake struct {
	// Up is what Answers returns.
	Up bool
	// Last is what LastAnswer returns.
	Last time.Time
	// Reported is what Operators returns.
	Reported map[string]Operator
	// Err is the error of Answers and Operators.
	Err error
}

var _ Clusters = &Fake{}

// Answers returns Up and Err.
func (f *Fake) Answers(context.Context, client.ObjectKey) (bool, error) { return f.Up, f.Err }

// LastAnswer returns Last.
func (f *Fake) LastAnswer(context.Context, client.ObjectKey) time.Time { return f.Last }

// Operators returns Reported and Err.
func (f *Fake) Operators(context.Context, client.ObjectKey, Subscriber) (map[string]Operator, error) {
	return f.Reported, f.Err
}
