// SPDX-License-Identifier: Apache-2.0

// Package workload is the only code of the control plane manager that talks to an installed cluster.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// Clusters answers questions about installed clusters.
type Clusters interface {
	// ClusterID asks the cluster's API server now for the ID of the OpenShift cluster. It is empty while there is no connection, which is an
	// answer and not an error.
	ClusterID(ctx context.Context, cluster client.ObjectKey) (string, error)
	// LastAnswer is when the API server last answered a probe; zero if it never has since the manager started.
	LastAnswer(ctx context.Context, cluster client.ObjectKey) time.Time
	// Operators reads the operators of the control plane (OperatorNames) that exist, and lets every later change of one of them wake the
	// subscriber. It is nil without an error when there is no connection; the subscriber is woken by the ClusterCache when there is one. With
	// an error, the operators are those that were read last; nil when that is too long ago.
	Operators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error)
}

// Cached asks through a ClusterCache, which keeps one connection for each cluster and probes it (CONTRACT CORE-15).
type Cached struct {
	// Cache is the manager's ClusterCache.
	Cache clustercache.ClusterCache
	// Answers are remembered for as long as failed reads are no news; nil remembers none.
	Answers *Answers
}

var _ Clusters = Cached{}

// clusterVersion is the only ClusterVersion of an OpenShift cluster.
const clusterVersion = "version"

// ClusterID reads the ClusterVersion, which any OpenShift API server has and the admin credential may read. An ID that is empty is an
// error: nothing may be decided on it.
func (c Cached) ClusterID(ctx context.Context, cluster client.ObjectKey) (string, error) {
	remote, err := c.Cache.GetUncachedClient(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("connect to Cluster %s: %w", cluster, err)
	}
	version := &configv1.ClusterVersion{}
	if err := remote.Get(ctx, client.ObjectKey{Name: clusterVersion}, version); err != nil {
		return "", fmt.Errorf("read the ClusterVersion of Cluster %s: %w", cluster, err)
	}
	if version.Spec.ClusterID == "" {
		return "", fmt.Errorf("the ClusterVersion of Cluster %s has no spec.clusterID", cluster)
	}
	return string(version.Spec.ClusterID), nil
}

// LastAnswer is the time of the last probe that succeeded.
func (c Cached) LastAnswer(ctx context.Context, cluster client.ObjectKey) time.Time {
	return c.Cache.GetHealthCheckingState(ctx, cluster).LastProbeSuccessTime
}

// Operators answers with what was read last when it cannot be read now.
func (c Cached) Operators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error) {
	operators, err := c.readOperators(ctx, cluster, subscriber)
	if err != nil {
		return c.Answers.last(cluster), err
	}
	c.Answers.keep(cluster, operators)
	return operators, nil
}

// readOperators reads from the connection's cache, which ends with the connection, and the watch with it: every call renews it.
func (c Cached) readOperators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error) {
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
	// ID is what ClusterID returns.
	ID string
	// Last is what LastAnswer returns.
	Last time.Time
	// Reported is what Operators returns.
	Reported map[string]Operator
	// Err is the error of ClusterID and Operators.
	Err error
}

var _ Clusters = &Fake{}

// ClusterID returns ID and Err.
func (f *Fake) ClusterID(context.Context, client.ObjectKey) (string, error) { return f.ID, f.Err }

// LastAnswer returns Last.
func (f *Fake) LastAnswer(context.Context, client.ObjectKey) time.Time { return f.Last }

// Operators returns Reported and Err.
func (f *Fake) Operators(context.Context, client.ObjectKey, Subscriber) (map[string]Operator, error) {
	return f.Reported, f.Err
}
