// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// FromNMStateConfig is every config that may still get a host and uses the InfraEnv that owns an NMStateConfig or, while there is no
// InfraEnv yet, the config that made it.
func (m Mapper) FromNMStateConfig(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[bootstrapv1.NMStateInfraEnvLabel] == "" {
		return nil
	}
	var requests []reconcile.Request
	for _, owner := range o.GetOwnerReferences() {
		switch owner.Kind {
		case "InfraEnv":
			requests = append(requests, m.configs(ctx, o.GetNamespace(), index.ConfigNetworks, index.InNetworks(owner.Name))...)
		case "OpenshiftAssistedConfig":
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}})
		}
	}
	return requests
}

// FromHostNetwork is every config with static networking whose Machine may get the BareMetalHost: its labels, its network data and its
// inspected hardware decide whether, and what it is given.
func (m Mapper) FromHostNetwork(ctx context.Context, o client.Object) []reconcile.Request {
	return append(m.FromChosenHost(ctx, o), m.configs(ctx, o.GetNamespace(), index.ConfigNetworks, index.NetworksPublished)...)
}

// FromChosenHost is every config with static networking that has handed out no medium yet: what the BareMetalHost lacks is nothing to wait
// for once it is another Machine's.
func (m Mapper) FromChosenHost(ctx context.Context, o client.Object) []reconcile.Request {
	return m.configs(ctx, o.GetNamespace(), index.ConfigNetworks, index.NetworksUnpublished)
}

// HostNetworks lets through what FromHostNetwork is for.
var HostNetworks = changedHost(func(host *bmov1alpha1.BareMetalHost) any {
	secret, err := metal3.NetworkDataSecret(host)
	return []any{
		host.Labels,
		host.DeletionTimestamp.IsZero(),
		host.Spec.ExternallyProvisioned,
		secret,
		err != nil,
		metal3.BootMAC(host),
		metal3.NICs(host),
	}
})

// ChosenHosts lets through what FromChosenHost is for.
var ChosenHosts = changedHost(func(host *bmov1alpha1.BareMetalHost) any { return metal3.Free(host) })

// changedHost lets a change of a BareMetalHost through when something that is seen of it changes, and all that come and go.
func changedHost(seen func(*bmov1alpha1.BareMetalHost) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*bmov1alpha1.BareMetalHost)
		after, same := e.ObjectNew.(*bmov1alpha1.BareMetalHost)
		return !ok || !same || !equality.Semantic.DeepEqual(seen(before), seen(after))
	}}
}
