// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// remains is what exists besides a ClusterDeployment and decides whether it may go.
type remains struct {
	deployment *hivev1.ClusterDeployment
	// controlPlane has the ClusterDeployment's name; nil when there is none.
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// cluster is the Cluster that the ClusterDeployment's label names; nil when it is gone.
	cluster *clusterv1.Cluster
	// bound are the names of the Agents that are bound to the ClusterDeployment.
	bound []string
}

// keep says why the ClusterDeployment has to stay; empty when it may go.
func (r remains) keep() string {
	switch {
	case r.controlPlane != nil && view.OwnedBy(r.deployment, r.controlPlane):
		return "its control plane exists"
	case r.cluster != nil && annotations.IsPaused(r.cluster, r.deployment):
		return "Cluster " + r.cluster.Name + " is paused: it is being moved away" // Nothing is done until it is gone (CONTRACT CTL-43).
	case len(r.bound) > 0:
		// The bootstrap provider deletes those of vanished Machines. One that somebody else has bound keeps the ClusterDeployment for good.
		return fmt.Sprintf("Agent %s is bound to it", r.bound[0])
	default:
		return ""
	}
}

// owner is the UID of the control plane that an object was made for; empty when it was made for none.
func owner(o metav1.Object) string { return o.GetLabels()[controlplanev1.OwnerUIDLabel] }

// observe reads what keep decides on; Agents in the namespace that the manager serves, all of them when it is empty.
func observe(ctx context.Context, reader client.Reader, namespace string, deployment *hivev1.ClusterDeployment) (remains, error) {
	found := remains{deployment: deployment}
	key := client.ObjectKeyFromObject(deployment)
	var err error
	if found.controlPlane, err = kube.GetOrNil[controlplanev1.OpenshiftAssistedControlPlane](ctx, reader, key); err != nil {
		return found, err
	}
	if found.keep() != "" {
		return found, nil // As for nearly every ClusterDeployment: there is no need to look at all Agents.
	}
	clusterKey := client.ObjectKey{Namespace: key.Namespace, Name: deployment.Labels[clusterv1.ClusterNameLabel]}
	if found.cluster, err = kube.GetOrNil[clusterv1.Cluster](ctx, reader, clusterKey); err != nil {
		return found, err
	}
	agents := &assisted.AgentList{}
	if err := reader.List(ctx, agents, client.InNamespace(namespace)); err != nil { // An Agent of any namespace can be bound to it.
		return found, fmt.Errorf("list Agents: %w", err)
	}
	for i := range agents.Items {
		if agents.Items[i].BoundTo(key.Namespace, key.Name) {
			found.bound = append(found.bound, agents.Items[i].Name)
		}
	}
	return found, nil
}
