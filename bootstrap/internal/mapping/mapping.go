// SPDX-License-Identifier: Apache-2.0

// Package mapping finds an OpenshiftAssistedConfig's owners and, for watches, the configs that an event concerns.
package mapping

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// Owners are the objects that a config belongs to.
type Owners struct {
	// Machine is the owner; nil before core has set it, and after it is gone.
	Machine *clusterv1.Machine
	// Cluster is the Machine's Cluster, or the one that the config's label names; nil when it is gone or not known.
	Cluster *clusterv1.Cluster
}

// MachineRef returns the reference to the Machine that owns the config, or nil.
func MachineRef(config *bootstrapv1.OpenshiftAssistedConfig) *metav1.OwnerReference {
	return ownerOf(config, "Machine")
}

// MachinePool returns the name of the MachinePool that owns the config, or "".
func MachinePool(config *bootstrapv1.OpenshiftAssistedConfig) string {
	if ref := ownerOf(config, "MachinePool"); ref != nil {
		return ref.Name
	}
	return ""
}

// ownerOf returns the reference to the owner of a kind of Cluster API's, or nil.
func ownerOf(config *bootstrapv1.OpenshiftAssistedConfig, kind string) *metav1.OwnerReference {
	for i := range config.OwnerReferences {
		ref := &config.OwnerReferences[i]
		if ref.Kind == kind && strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
			return ref
		}
	}
	return nil
}

// OwnersOf reads the config's Machine and Cluster. A Machine of the same name with another UID is not the owner.
func OwnersOf(ctx context.Context, c client.Reader, config *bootstrapv1.OpenshiftAssistedConfig) (Owners, error) {
	owners := Owners{}
	clusterName := config.Labels[clusterv1.ClusterNameLabel]
	if ref := MachineRef(config); ref != nil {
		machine, err := kube.GetOrNil[clusterv1.Machine](ctx, c, types.NamespacedName{Namespace: config.Namespace, Name: ref.Name})
		if err != nil {
			return owners, err
		}
		if machine != nil && machine.UID == ref.UID {
			owners.Machine = machine
			clusterName = machine.Spec.ClusterName
		}
	}
	var err error
	owners.Cluster, err = Cluster(ctx, c, config.Namespace, clusterName)
	return owners, err
}

// Cluster reads a Cluster. It is nil when it is gone or the name is empty.
func Cluster(ctx context.Context, c client.Reader, namespace, name string) (*clusterv1.Cluster, error) {
	if name == "" {
		return nil, nil
	}
	return kube.GetOrNil[clusterv1.Cluster](ctx, c, types.NamespacedName{Namespace: namespace, Name: name})
}

// Mapper answers "which configs does this event concern".
type Mapper struct {
	// Client reads from the cache, which has the fields of package index.
	Client client.Reader
	// Gate knows which CRDs are served; nil is all of them.
	Gate *manager.Gate
}

func (m Mapper) served(crd string) bool { return m.Gate == nil || len(m.Gate.Missing(crd)) == 0 }

func (m Mapper) in(namespace string) index.Finder {
	return index.Finder{Reader: m.Client, Namespace: namespace, Events: true}
}

// FromMachine is the config of a Machine.
func (m Mapper) FromMachine(_ context.Context, o client.Object) []reconcile.Request {
	machine, ok := o.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	name := index.ConfigOf(machine)
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: name}}}
}

// FromCluster is every config of a Cluster.
func (m Mapper) FromCluster(ctx context.Context, o client.Object) []reconcile.Request {
	return m.configs(ctx, o.GetNamespace(), index.ConfigCluster, o.GetName())
}

// FromClusterLabel is every config of the Cluster that the object's label names.
func (m Mapper) FromClusterLabel(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return m.configs(ctx, o.GetNamespace(), index.ConfigCluster, name)
}

// FromInfraMachine is the config of the Machine that a Metal3Machine belongs to.
func (m Mapper) FromInfraMachine(ctx context.Context, o client.Object) []reconcile.Request {
	return m.fromInfraMachine(ctx, o.GetNamespace(), o.GetName())
}

func (m Mapper) fromInfraMachine(ctx context.Context, namespace, name string) []reconcile.Request {
	machines, err := m.in(namespace).Machines(ctx, index.MachineInfra, name)
	if err != nil {
		return failed(ctx, err)
	}
	var requests []reconcile.Request
	for _, machine := range machines {
		requests = append(requests, m.FromMachine(ctx, machine)...)
	}
	return requests
}

// All is every config.
func (m Mapper) All(ctx context.Context) []reconcile.Request {
	return kube.Requests(ctx, m.Client, &bootstrapv1.OpenshiftAssistedConfigList{}, kube.Every[*bootstrapv1.OpenshiftAssistedConfig])
}

// configs are the configs of a namespace that have a value in a field.
func (m Mapper) configs(ctx context.Context, namespace, field, value string) []reconcile.Request {
	configs, err := m.in(namespace).Configs(ctx, field, value)
	if err != nil {
		return failed(ctx, err)
	}
	requests := make([]reconcile.Request, 0, len(configs))
	for _, config := range configs {
		requests = append(requests, requestOf(config))
	}
	return requests
}

func requestOf(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// failed tells the log that an event could not be mapped: it has nobody to return an error to.
func failed(ctx context.Context, err error) []reconcile.Request {
	ctrl.LoggerFrom(ctx).Error(err, "Cannot find the configs that an event concerns")
	return nil
}
