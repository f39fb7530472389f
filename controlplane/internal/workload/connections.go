// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/connection"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/version"
)

// retryInterval is the time between attempts to connect to a cluster, unless a flag says otherwise.
const retryInterval = 30 * time.Second

// ours lets the manager connect to clusters of its own kind of control plane only: those of other providers are none of its business, and
// each connection costs a cache and a probe every few seconds.
func ours(cluster *clusterv1.Cluster) bool {
	ref := cluster.Spec.ControlPlaneRef
	return ref.Kind == "OpenshiftAssistedControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group
}

// pageOfRequests is how many requests for certificates are read at once. A kubelet whose requests nobody approves makes another one every
// quarter of an hour, and Kubernetes removes them after a day: a hundred Nodes have more of them than one answer may have.
const pageOfRequests = 500

// kinds are those that are kept of installed clusters, and what of their objects is.
func kinds() []connection.Kind {
	return []connection.Kind{
		{Object: &configv1.ClusterOperator{}, Keep: keepConditions, Herald: true},
		{Object: &configv1.ClusterVersion{}, Keep: keepVersion},
		{Object: &operatorv1.Etcd{}, Keep: keepReport},
		{Object: &machineconfigv1.MachineConfigPool{}},
		{Object: &corev1.Node{}, Keep: keepNode},
		{
			Object: &certificatesv1.CertificateSigningRequest{}, Keep: keepPending, Page: pageOfRequests,
			Field: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName),
		},
		{Object: &corev1.ConfigMap{}, Namespace: authoritiesNamespace, Field: called(authoritiesName)},
		{Object: &corev1.ServiceAccount{}, Namespace: AccountNamespace, Field: called(AccountName)},
		{Object: &rbacv1.ClusterRoleBinding{}, Field: called(accountBinding)},
	}
}

// called selects the object of a name.
func called(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// mapper knows every kind of an installed cluster that is asked for, so that no cluster is asked for all of its kinds: what it answers
// takes more memory than all that is read of it.
func mapper() meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	everywhere := map[schema.GroupVersion][]string{
		corev1.SchemeGroupVersion:         {"Namespace", "Node"},
		certificatesv1.SchemeGroupVersion: {"CertificateSigningRequest"},
		rbacv1.SchemeGroupVersion:         {"ClusterRoleBinding"},
		configv1.GroupVersion:             {"ClusterOperator", "ClusterVersion"},
		operatorv1.GroupVersion:           {"Etcd"},
		machineconfigv1.GroupVersion:      {"MachineConfigPool"},
	}
	for group, kinds := range everywhere {
		for _, kind := range kinds {
			known.Add(group.WithKind(kind), meta.RESTScopeRoot)
		}
	}
	for _, kind := range []string{"ConfigMap", "Pod", "ServiceAccount"} {
		known.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	known.Add(machineOfMachineAPI, meta.RESTScopeNamespace)
	return known
}

// keepConditions keeps of the operators that are read the conditions that are, and nothing of the others.
func keepConditions(in client.Object) client.Object {
	o, ok := in.(*configv1.ClusterOperator)
	if !ok || !slices.Contains(OperatorNames(), o.Name) {
		return nil
	}
	kept := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
	for _, c := range o.Status.Conditions {
		if slices.Contains(operatorConditions(), c.Type) {
			c.Message = strings.Clone(oneLine(c.Message))
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
	return kept
}

// keepNode keeps of a Node what tells it from others, and its provider ID.
func keepNode(in client.Object) client.Object {
	o, ok := in.(*corev1.Node)
	if !ok {
		return nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			DeletionTimestamp: o.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{ProviderID: o.Spec.ProviderID},
	}
}

// keepPending keeps requests on which nobody has decided yet.
func keepPending(in client.Object) client.Object {
	o, ok := in.(*certificatesv1.CertificateSigningRequest)
	if !ok || len(o.Status.Conditions) > 0 || len(o.Status.Certificate) > 0 {
		return nil
	}
	o.SetManagedFields(nil)
	return o
}

// keepReport keeps of an Etcd what EtcdOperator reads.
func keepReport(in client.Object) client.Object {
	o, ok := in.(*operatorv1.Etcd)
	if !ok {
		return nil
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
	return kept
}

// NewClusterCache adds the connections to installed clusters to a manager. They are made with the kubeconfigs in the manager's cache.
func NewClusterCache(ctx context.Context, mgr ctrl.Manager, o manager.Options, name string) (clustercache.ClusterCache, error) {
	clusters, err := connection.SetupWithManager(ctx, mgr, connection.Options{
		SecretClient: mgr.GetCache(), WatchFilter: o.WatchFilter, Wanted: ours, Kinds: kinds(), Mapper: mapper(),
		UserAgent: version.UserAgent(name), QPS: o.ClusterCacheQPS, Burst: o.ClusterCacheBurst,
		RetryInterval: cmp.Or(o.ClusterCacheRetryInterval, retryInterval),
	}, o.ControllerOptions(o.ClusterCacheConcurrency))
	if err != nil {
		return nil, fmt.Errorf("set up the connections to installed clusters: %w", err)
	}
	return clusters, nil
}
