// SPDX-License-Identifier: Apache-2.0

// Package connection keeps one connection to each installed cluster. It does what Cluster API's ClusterCache does, whose interface it has,
// and holds a small part of the memory (ADR 9): it knows the kinds that the manager uses without asking each cluster for all of its own,
// and watches with one stream a kind, without informers, and only while somebody waits for a change. Otherwise its probes look.
package connection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"

	"github.com/capi-openshift/agent-providers/internal/manager"
)

// Options are the settings of connections.
type Options struct {
	// SecretClient reads the Secrets with the kubeconfigs.
	SecretClient client.Reader
	// WatchFilter is that of the manager.
	WatchFilter string
	// Wanted chooses the Clusters to connect to.
	Wanted func(*clusterv1.Cluster) bool
	// Kinds are those that can be watched, and Mapper knows them and all others that are asked for.
	Kinds  []Kind
	Mapper meta.RESTMapper
	// UserAgent, QPS and Burst are those of the requests to each cluster.
	UserAgent string
	QPS       float32
	Burst     int
	// RetryInterval is the time between attempts to connect.
	RetryInterval time.Duration
}

// Connections has the connections to all installed clusters.
type Connections struct {
	options Options
	reader  client.Reader
	scheme  *runtime.Scheme
	codecs  serializer.CodecFactory
	kinds   []*kind
	now     func() time.Time
	// ends with the manager.
	ends context.Context //nolint:containedctx // Connections live longer than the pass that makes them.

	mu       sync.RWMutex
	clusters map[client.ObjectKey]*cluster
	sources  []*clusterSource
}

var _ clustercache.ClusterCache = &Connections{}

// cluster is what is known of a cluster.
type cluster struct {
	mu         sync.RWMutex
	connection *connection
	// refused is when the last attempt to connect failed; zero after one that succeeded.
	refused time.Time
	health  clustercache.HealthCheckingState
}

// SetupWithManager adds the controller that opens, probes and closes connections.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options, options controller.Options) (*Connections, error) {
	ends, end := context.WithCancel(context.Background())
	c, err := newConnections(ends, mgr.GetClient(), mgr.GetScheme(), o)
	if err != nil {
		end()
		return nil, err
	}
	err = mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		end()
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("end connections with the manager: %w", err)
	}
	log := ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)
	b := capicontrollerutil.NewControllerManagedBy(mgr, log).
		Named(controllerName).
		For(&clusterv1.Cluster{}).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, o.WatchFilter))
	if _, err := manager.Build(ctx, b, options, c); err != nil {
		return nil, fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	return c, nil
}

func newConnections(ends context.Context, reader client.Reader, scheme *runtime.Scheme, o Options) (*Connections, error) {
	kinds, err := newKinds(scheme, o.Mapper, o.Kinds)
	if err != nil {
		return nil, err
	}
	return &Connections{
		options: o, reader: reader, scheme: scheme, codecs: serializer.NewCodecFactory(scheme), kinds: kinds, now: time.Now, ends: ends,
		clusters: map[client.ObjectKey]*cluster{},
	}, nil
}

// connected is the connection to a cluster; without one it fails with clustercache.ErrClusterNotConnected.
func (c *Connections) connected(key client.ObjectKey) (*connection, error) {
	c.mu.RLock()
	known := c.clusters[key]
	c.mu.RUnlock()
	if known != nil {
		known.mu.RLock()
		defer known.mu.RUnlock()
		if known.connection != nil {
			return known.connection, nil
		}
	}
	return nil, clustercache.ErrClusterNotConnected
}

// GetClient returns the client that GetUncachedClient returns: what is watched is read with GetReader.
func (c *Connections) GetClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
	return c.GetUncachedClient(ctx, cluster)
}

// GetReader returns a reader of what is watched, which is a Reader.
func (c *Connections) GetReader(_ context.Context, cluster client.ObjectKey) (client.Reader, error) {
	made, err := c.connected(cluster)
	if err != nil {
		return nil, err
	}
	return Reader{made}, nil
}

// GetUncachedClient returns a client that asks the cluster's API server.
func (c *Connections) GetUncachedClient(_ context.Context, cluster client.ObjectKey) (client.Client, error) {
	made, err := c.connected(cluster)
	if err != nil {
		return nil, err
	}
	return c.client(made)
}

// GetRESTConfig returns the configuration that a connection was made with.
func (c *Connections) GetRESTConfig(_ context.Context, cluster client.ObjectKey) (*rest.Config, error) {
	made, err := c.connected(cluster)
	if err != nil {
		return nil, err
	}
	return made.config, nil
}

// Watch adds a Watcher of this package to a connection, unless it has one of its name. It ends with the connection.
func (c *Connections) Watch(_ context.Context, cluster client.ObjectKey, watcher clustercache.Watcher) error {
	made, err := c.connected(cluster)
	if err != nil {
		return err
	}
	return made.subscribe(watcher)
}

// GetHealthCheckingState tells how the probes of a cluster went.
func (c *Connections) GetHealthCheckingState(_ context.Context, key client.ObjectKey) clustercache.HealthCheckingState {
	c.mu.RLock()
	known := c.clusters[key]
	c.mu.RUnlock()
	if known == nil {
		return clustercache.HealthCheckingState{}
	}
	known.mu.RLock()
	defer known.mu.RUnlock()
	return known.health
}
