// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// FromInfraEnv is every config that uses the InfraEnv, or waits for it to go because it was not made for its Cluster.
func (m Mapper) FromInfraEnv(ctx context.Context, o client.Object) []reconcile.Request {
	return m.configs(ctx, o.GetNamespace(), index.ConfigInfraEnv, o.GetName())
}

// InfraEnvs lets a change of an InfraEnv through that is not one of its users alone: each of many users would look at it for every other
// one. Users tells those whom it concerns.
var InfraEnvs = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*assisted.InfraEnv)
	after, same := e.ObjectNew.(*assisted.InfraEnv)
	return !ok || !same || !equality.Semantic.DeepEqual(withoutUsers(before), withoutUsers(after))
}}

func withoutUsers(infraEnv *assisted.InfraEnv) *assisted.InfraEnv {
	o := *infraEnv
	o.ResourceVersion, o.OwnerReferences = "", nil
	return &o
}

// Users wakes, when an InfraEnv changes, the configs that have to join it or to leave it, because the change may have been in their way,
// those that are no users of it any more, and those that have just joined: a pass that did not see that yet has tried to join again, and
// was refused because of the very change that it waits for.
func (m Mapper) Users() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			for _, request := range m.fromUsers(ctx, e.ObjectOld, e.ObjectNew) {
				queue.Add(request)
			}
		},
	}
}

func (m Mapper) fromUsers(ctx context.Context, before, after client.Object) []reconcile.Request {
	users, earlier := uidsOfOwners(after), uidsOfOwners(before)
	var requests []reconcile.Request
	for _, ref := range before.GetOwnerReferences() {
		if !users[ref.UID] {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: after.GetNamespace(), Name: ref.Name}})
		}
	}
	configs, err := m.in(after.GetNamespace()).Configs(ctx, index.ConfigUnsettled, after.GetName())
	if err != nil {
		return failed(ctx, err)
	}
	for _, config := range configs {
		if !config.DeletionTimestamp.IsZero() || !users[config.UID] || !earlier[config.UID] {
			requests = append(requests, requestOf(config))
		}
	}
	return requests
}

func uidsOfOwners(o client.Object) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(o.GetOwnerReferences()))
	for _, ref := range o.GetOwnerReferences() {
		uids[ref.UID] = true
	}
	return uids
}
