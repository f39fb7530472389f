// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	topologycluster "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	topologymachinedeployment "sigs.k8s.io/cluster-api/core/reconcilers/topology/machinedeployment"
	topologymachineset "sigs.k8s.io/cluster-api/core/reconcilers/topology/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
)

const (
	concurrency                 = 10
	remoteConnectionGracePeriod = 50 * time.Second
	remoteConditionsGracePeriod = 5 * time.Minute
	connectionRetryInterval     = 2 * time.Second
	clusterClientQPS            = 20
	clusterClientBurst          = 30
)

func setupClusterCache(ctx context.Context, mgr ctrl.Manager) (clustercache.ClusterCache, error) {
	secrets, err := setup.CreateSecretCachingClient(mgr)
	if err != nil {
		return nil, fmt.Errorf("cannot create the client that reads kubeconfig secrets: %w", err)
	}
	clusterCache, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets,
		Cache:        setup.ClusterCacheCacheOptions(),
		Client:       setup.ClusterCacheClientOptions(controllerName, clusterClientQPS, clusterClientBurst),
	}, controller.Options{MaxConcurrentReconciles: concurrency})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the cache of installed clusters: %w", err)
	}
	// Simulated installs take seconds; the default of 30 s between two tries to connect would be most of every run.
	retry, ok := clusterCache.(interface{ SetConnectionCreationRetryInterval(time.Duration) })
	if !ok {
		return nil, errors.New("the cluster cache has no setting for its retry interval any more: adapt to this Cluster API version")
	}
	retry.SetConnectionCreationRetryInterval(connectionRetryInterval)
	return clusterCache, nil
}

type reconciler interface {
	SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error
}

func setupReconcilers(ctx context.Context, mgr ctrl.Manager, clusterCache clustercache.ClusterCache) error {
	client, reader := mgr.GetClient(), mgr.GetAPIReader()
	reconcilers := []reconciler{
		&cluster.Reconciler{
			Client: client, APIReader: reader, ClusterCache: clusterCache,
			RemoteConnectionGracePeriod: remoteConnectionGracePeriod,
		},
		&machine.Reconciler{
			Client: client, APIReader: reader, ClusterCache: clusterCache,
			RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
		},
		&machineset.Reconciler{
			Client: client, APIReader: reader, ClusterCache: clusterCache,
			PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll),
		},
		&machinedeployment.Reconciler{Client: client, APIReader: reader},
		&machinehealthcheck.Reconciler{Client: client, ClusterCache: clusterCache},
		&clusterclass.Reconciler{Client: client},
		&topologycluster.Reconciler{Client: client, APIReader: reader, ClusterCache: clusterCache},
		&topologymachinedeployment.Reconciler{Client: client, APIReader: reader},
		&topologymachineset.Reconciler{Client: client, APIReader: reader},
	}
	for _, r := range reconcilers {
		if err := r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: concurrency}); err != nil {
			return fmt.Errorf("cannot set up %T: %w", r, err)
		}
	}
	return nil
}
