// SPDX-License-Identifier: Apache-2.0

// Package index has the field indexes of the manager's cache, by which a pass finds what belongs to its cluster: without them it would look
// at, and copy, all objects of the namespace, and a namespace may have the hosts of hundreds of clusters.
package index

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const (
	// cluster is the name of the Cluster that an object belongs to.
	cluster = "cluster"
	// imageSet is the ClusterImageSet that is made for a control plane, and the one that its spec names.
	imageSet = "imageSet"
	// deployment is the ClusterDeployment that an Agent is bound to, as namespace/name.
	deployment = "deployment"
)

// Index is a field index of one kind.
type Index struct {
	Kind   client.Object
	Field  string
	Values client.IndexerFunc
}

// All are the indexes of kinds that are there when the manager starts.
func All() []Index {
	return []Index{
		{&clusterv1.Machine{}, cluster, labelled},
		{&clusterv1.MachineSet{}, cluster, labelled},
		{&clusterv1.MachineDeployment{}, cluster, labelled},
		{&clusterv1.MachinePool{}, cluster, labelled},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, cluster, ofControlPlane},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, imageSet, imageSets},
	}
}

// AddAll adds all of them to a cache.
func AddAll(ctx context.Context, cache client.FieldIndexer) error {
	for _, i := range All() {
		if err := i.AddTo(ctx, cache); err != nil {
			return err
		}
	}
	return nil
}

// Agents is the index of Agents, whose CRD may come later.
func Agents() Index { return Index{&assisted.Agent{}, deployment, bound} }

// AddTo adds an index to a cache.
func (i Index) AddTo(ctx context.Context, cache client.FieldIndexer) error {
	if err := cache.IndexField(ctx, i.Kind, i.Field, i.Values); err != nil {
		return fmt.Errorf("index %T by its %s: %w", i.Kind, i.Field, err)
	}
	return nil
}

// OfCluster selects the objects of a Cluster.
func OfCluster(key types.NamespacedName) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{cluster: key.Name}}
}

// UsingImageSet selects the control planes that a ClusterImageSet is made for, or whose spec names it.
func UsingImageSet(name string) client.ListOption { return client.MatchingFields{imageSet: name} }

// BoundTo selects the Agents, of all namespaces, that are bound to a ClusterDeployment.
func BoundTo(key types.NamespacedName) client.ListOption {
	return client.MatchingFields{deployment: key.String()}
}

// labelled is the Cluster of an object that Cluster API core labels.
func labelled(o client.Object) []string { return value(o.GetLabels()[clusterv1.ClusterNameLabel]) }

// ofControlPlane is the Cluster of a control plane.
func ofControlPlane(o client.Object) []string { return value(ClusterOf(o)) }

func imageSets(o client.Object) []string {
	cp, ok := o.(*controlplanev1.OpenshiftAssistedControlPlane)
	if !ok {
		return nil
	}
	return append(value(cp.Spec.Release.ImageSetRef.Name), view.ImageSetName(client.ObjectKeyFromObject(cp)))
}

func bound(o client.Object) []string {
	agent, ok := o.(*assisted.Agent)
	if !ok || agent.Spec.ClusterDeploymentName == nil {
		return nil
	}
	ref := agent.Spec.ClusterDeploymentName
	return []string{types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}.String()}
}

// value is an entry of an index; none when there is nothing to find the object by.
func value(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// ClusterOf is the name of a control plane's Cluster, also when the Cluster is gone: the owner reference outlives it.
func ClusterOf(cp client.Object) string {
	for _, ref := range cp.GetOwnerReferences() {
		if ref.Kind == "Cluster" {
			return ref.Name
		}
	}
	return cp.GetLabels()[clusterv1.ClusterNameLabel]
}
