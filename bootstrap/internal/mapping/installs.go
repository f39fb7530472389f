// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Installs lets through what changes an AgentClusterInstall for its hosts: assisted-service writes its status often, and each of many hosts
// would look at it.
var Installs = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*hiveext.AgentClusterInstall)
	after, same := e.ObjectNew.(*hiveext.AgentClusterInstall)
	return !ok || !same || !equality.Semantic.DeepEqual(seenOf(before), seenOf(after))
}}

// seenOf is all that the passes of hosts see of an AgentClusterInstall.
func seenOf(install *hiveext.AgentClusterInstall) any {
	return []any{
		install.UID, install.Labels[clusterv1.ClusterNameLabel], install.Annotations, install.DeletionTimestamp.IsZero(),
		install.Spec.ClusterDeploymentRef, install.Spec.ProvisionRequirements, assisted.PhaseOf(install), assisted.AcceptsHosts(install),
	}
}
