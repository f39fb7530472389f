// SPDX-License-Identifier: Apache-2.0

// Package served finds the Clusters that the control plane manager looks after, and maps events to them, for the reconcilers of what
// belongs to a Cluster beside its control plane.
package served

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// Cluster reads a Cluster and its control plane. Both are nil when nothing is to be done for the Cluster: it has no control plane of this
// provider, or that is being deleted, paused, or has another label cluster.x-k8s.io/watch-filter than watchFilter, of which empty is all.
func Cluster(
	ctx context.Context, reader client.Reader, key client.ObjectKey, watchFilter string,
) (*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane, error) {
	cluster, err := kube.GetOrNil[clusterv1.Cluster](ctx, reader, key)
	if err != nil || cluster == nil || cluster.Spec.ControlPlaneRef.Kind != "OpenshiftAssistedControlPlane" {
		return nil, nil, err
	}
	key = client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
	cp, err := kube.GetOrNil[controlplanev1.OpenshiftAssistedControlPlane](ctx, reader, key)
	if err != nil || cp == nil || watchFilter != "" && !labels.HasWatchLabel(cp, watchFilter) ||
		annotations.IsPaused(cluster, cp) || !cp.DeletionTimestamp.IsZero() {
		return nil, nil, err
	}
	return cluster, cp, nil
}

// SameCluster asks the cluster that answers now whether it is the one that was installed for a control plane, before something is written
// to it or told of it: the kubeconfig may lead to another one, whose Nodes have the same names. The error says which one answers. Nobody is
// asked before an installation is recorded.
func SameCluster(
	ctx context.Context, identity workload.Identity, cluster client.ObjectKey, cp *controlplanev1.OpenshiftAssistedControlPlane,
) error {
	record, installed := view.InstalledOf(cp)
	if !installed {
		return nil
	}
	id, err := identity.ClusterID(ctx, cluster)
	switch {
	case err != nil:
		return fmt.Errorf("ask which cluster answers: %w", err)
	case id == "":
		return fmt.Errorf("ask which cluster answers as Cluster %s: %w", cluster, clustercache.ErrClusterNotConnected)
	case id != record.ClusterID:
		return fmt.Errorf("nothing is written to cluster %s, which answers as Cluster %s: %s was installed, look at Secret %s", id, cluster,
			record.ClusterID, secret.Name(cluster.Name, secret.Kubeconfig))
	}
	return nil
}

// Resumed lets those events of a control plane through after which Cluster finds what it did not find before, and none of the changes of
// its status.
var Resumed = predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})

// ByLabel maps an object with the label cluster.x-k8s.io/cluster-name to its Cluster.
func ByLabel(_ context.Context, o client.Object) []reconcile.Request {
	cluster := o.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: cluster}}}
}
