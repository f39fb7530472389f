// SPDX-License-Identifier: Apache-2.0

// Package mapping finds an OpenshiftAssistedConfig's owners and, for watches, the configs that an event concerns.
package mapping

import (
	"context"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
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
	// Client reads from the cache.
	Client client.Reader
}

// FromMachine is the config of a Machine.
func (m Mapper) FromMachine(_ context.Context, o client.Object) []reconcile.Request {
	machine, ok := o.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind != "OpenshiftAssistedConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: ref.Name}}}
}

// FromCluster is every config of a Cluster.
func (m Mapper) FromCluster(ctx context.Context, o client.Object) []reconcile.Request {
	return m.list(ctx, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetName()})
}

// FromClusterLabel is every config of the Cluster that the object's label names.
func (m Mapper) FromClusterLabel(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return m.list(ctx, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: name})
}

// FromInfraEnv is every config that uses the InfraEnv, or waits for it to go because it was not made for its Cluster.
func (m Mapper) FromInfraEnv(ctx context.Context, o client.Object) []reconcile.Request {
	return m.recording(ctx, o.GetNamespace(), o.GetName())
}

// FromAgent is the config whose Machine an Agent is claimed for or, while it is claimed for none, every config of its InfraEnv.
func (m Mapper) FromAgent(ctx context.Context, o client.Object) []reconcile.Request {
	agent, ok := o.(*assisted.Agent)
	if !ok {
		return nil
	}
	if requests := m.FromClaimedAgent(ctx, agent); requests != nil {
		return requests
	}
	return m.recording(ctx, agent.Namespace, agent.Labels[assisted.InfraEnvLabel])
}

// FromClaimedAgent is the config whose Machine an Agent is claimed for.
func (m Mapper) FromClaimedAgent(ctx context.Context, o client.Object) []reconcile.Request {
	agent, ok := o.(*assisted.Agent)
	if !ok {
		return nil
	}
	name, uid, claimed := agent.ClaimedFor()
	if !claimed {
		return nil
	}
	machine := &clusterv1.Machine{}
	if err := m.Client.Get(ctx, types.NamespacedName{Namespace: agent.Namespace, Name: name}, machine); err == nil &&
		string(machine.UID) == uid {
		return m.FromMachine(ctx, machine) // By name, also when the config has vanished: the Machine may wait for its Agent to go.
	}
	return m.filtered(ctx, func(config *bootstrapv1.OpenshiftAssistedConfig) bool {
		ref := MachineRef(config)
		return ref != nil && string(ref.UID) == uid
	}, client.InNamespace(agent.Namespace))
}

// FromHost is the config of the Machine whose infrastructure machine consumes a BareMetalHost.
func (m Mapper) FromHost(ctx context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*bmov1alpha1.BareMetalHost)
	if !ok || host.Spec.ConsumerRef == nil {
		return nil
	}
	return m.fromInfraMachine(ctx, host.Namespace, host.Spec.ConsumerRef.Name)
}

// FromAnyHost is FromHost and every config of the namespace whose host is not recognised: an address or serial number of one host may make
// the Agent of another one ambiguous, or unambiguous. Labels, network data and inspected hardware of a host decide whether a Machine with
// static networking may get it.
func (m Mapper) FromAnyHost(ctx context.Context, o client.Object) []reconcile.Request {
	return append(m.FromHost(ctx, o), m.filtered(ctx, func(config *bootstrapv1.OpenshiftAssistedConfig) bool {
		return !conditions.IsTrue(config, bootstrapv1.HostRecognizedCondition)
	}, client.InNamespace(o.GetNamespace()))...)
}

// FromInfraMachine is the config of the Machine that a Metal3Machine belongs to.
func (m Mapper) FromInfraMachine(ctx context.Context, o client.Object) []reconcile.Request {
	return m.fromInfraMachine(ctx, o.GetNamespace(), o.GetName())
}

func (m Mapper) fromInfraMachine(ctx context.Context, namespace, name string) []reconcile.Request {
	machines := &clusterv1.MachineList{}
	if err := m.Client.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Machines to map an event")
		return nil
	}
	for i := range machines.Items {
		if ref := machines.Items[i].Spec.InfrastructureRef; ref.Name == name && metal3.IsMachineRef(ref) {
			return m.FromMachine(ctx, &machines.Items[i])
		}
	}
	return nil
}

// All is every config.
func (m Mapper) All(ctx context.Context) []reconcile.Request { return m.list(ctx) }

func (m Mapper) recording(ctx context.Context, namespace, infraEnv string) []reconcile.Request {
	return m.filtered(ctx, func(config *bootstrapv1.OpenshiftAssistedConfig) bool {
		return config.Annotations[bootstrapv1.InfraEnvAnnotation] == infraEnv
	}, client.InNamespace(namespace))
}

func (m Mapper) list(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	return m.filtered(ctx, kube.Every[*bootstrapv1.OpenshiftAssistedConfig], opts...)
}

func (m Mapper) filtered(
	ctx context.Context, keep func(*bootstrapv1.OpenshiftAssistedConfig) bool, opts ...client.ListOption,
) []reconcile.Request {
	return kube.Requests(ctx, m.Client, &bootstrapv1.OpenshiftAssistedConfigList{}, keep, opts...)
}
