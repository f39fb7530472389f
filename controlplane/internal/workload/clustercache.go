// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/remote"

	"github.com/capi-openshift/agent-providers/internal/manager"
)

// NewClusterCache adds the connections to installed clusters to a manager. They are made with the kubeconfigs in the manager's cache.
func NewClusterCache(ctx context.Context, mgr ctrl.Manager, o manager.Options, name string) (clustercache.ClusterCache, error) {
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient:     mgr.GetCache(),
		WatchFilterValue: o.WatchFilter,
		Cache:            clustercache.CacheOptions{DefaultTransform: cache.TransformStripManagedFields(), ByObject: servingRequestsOnly()},
		Client: clustercache.ClientOptions{
			QPS:       o.ClusterCacheQPS,
			Burst:     o.ClusterCacheBurst,
			UserAgent: remote.DefaultClusterAPIUserAgent(name),
		},
	}, o.ControllerOptions(o.ClusterCacheConcurrency))
	if err != nil {
		return nil, fmt.Errorf("set up the connections to installed clusters: %w", err)
	}
	// There is no option for the interval, only this method behind the interface.
	if c, ok := clusters.(interface{ SetConnectionCreationRetryInterval(interval time.Duration) }); ok && o.ClusterCacheRetryInterval > 0 {
		c.SetConnectionCreationRetryInterval(o.ClusterCacheRetryInterval)
	}
	return clusters, nil
}
