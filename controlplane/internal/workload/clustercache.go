// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/version"
)

// ours lets the manager connect to clusters of its own kind of control plane only: those of other providers are none of its business, and
// each connection costs a cache and a probe every few seconds.
func ours(cluster *clusterv1.Cluster) bool {
	ref := cluster.Spec.ControlPlaneRef
	return ref.Kind == "OpenshiftAssistedControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group
}

// cacheRules keep out of the cache of a connection what nobody reads.
func cacheRules() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&certificatesv1.CertificateSigningRequest{}: {
			Field: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName),
		},
		&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{authoritiesNamespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", authoritiesName),
		},
		&corev1.ServiceAccount{}:     {Namespaces: map[string]cache.Config{AccountNamespace: {}}},
		&rbacv1.ClusterRoleBinding{}: {Field: fields.OneTermEqualSelector("metadata.name", accountBinding)},
		&configv1.ClusterOperator{}:  {Transform: keepConditions},
		&configv1.ClusterVersion{}:   {Transform: keepVersion},
		&operatorv1.Etcd{}:           {Transform: keepReport},
	}
}

// keepConditions keeps the conditions of the operators that are read, and of the others the name.
func keepConditions(in any) (any, error) {
	o, ok := in.(*configv1.ClusterOperator)
	if !ok {
		return in, nil
	}
	kept := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
	if slices.Contains(OperatorNames(), o.Name) {
		kept.Status.Conditions = o.Status.Conditions
	}
	return kept, nil
}

// keepReport keeps of an Etcd what EtcdOperator reads.
func keepReport(in any) (any, error) {
	o, ok := in.(*operatorv1.Etcd)
	if !ok {
		return in, nil
	}
	kept := &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
	kept.Status.LatestAvailableRevision = o.Status.LatestAvailableRevision
	for _, c := range o.Status.Conditions {
		if slices.Contains(etcdConditions(), c.Type) {
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
	for _, n := range o.Status.NodeStatuses {
		kept.Status.NodeStatuses = append(kept.Status.NodeStatuses, operatorv1.NodeStatus{
			NodeName: n.NodeName, CurrentRevision: n.CurrentRevision, TargetRevision: n.TargetRevision,
		})
	}
	return kept, nil
}

// NewClusterCache adds the connections to installed clusters to a manager. They are made with the kubeconfigs in the manager's cache.
func NewClusterCache(ctx context.Context, mgr ctrl.Manager, o manager.Options, name string) (clustercache.ClusterCache, error) {
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient:     mgr.GetCache(),
		WatchFilterValue: o.WatchFilter,
		ClusterFilter:    ours,
		Cache:            clustercache.CacheOptions{DefaultTransform: cache.TransformStripManagedFields(), ByObject: cacheRules()},
		Client: clustercache.ClientOptions{
			QPS: o.ClusterCacheQPS, Burst: o.ClusterCacheBurst, UserAgent: version.UserAgent(name),
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
