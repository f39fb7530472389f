// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// FromNMStateConfig is every config of the InfraEnv that owns an NMStateConfig or, while there is no InfraEnv yet, the config that made it.
func (m Mapper) FromNMStateConfig(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[bootstrapv1.NMStateInfraEnvLabel] == "" {
		return nil
	}
	var requests []reconcile.Request
	for _, owner := range o.GetOwnerReferences() {
		switch owner.Kind {
		case "InfraEnv":
			requests = append(requests, m.recording(ctx, o.GetNamespace(), owner.Name)...)
		case "OpenshiftAssistedConfig":
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}})
		}
	}
	return requests
}
