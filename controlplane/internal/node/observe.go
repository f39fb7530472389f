// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// scope is all that one pass knows.
type scope struct {
	// machine waits for its Node; nil when it does not, or may not be looked after now.
	machine *clusterv1.Machine
	// cluster is the Machine's.
	cluster client.ObjectKey
	// controlPlane is the Cluster's, which has the record of what was installed.
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// node has the Machine's name; nil when there is none, or no connection to the cluster.
	node *corev1.Node
}

// observe asks the installed cluster for Machines only that wait for their Nodes.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	machine, err := kube.GetOrNil[clusterv1.Machine](ctx, r.Client, key)
	if err != nil || machine == nil || !waits(machine) || r.WatchFilter != "" && !labels.HasWatchLabel(machine, r.WatchFilter) {
		return &scope{}, err
	}
	key = client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	cluster, err := kube.GetOrNil[clusterv1.Cluster](ctx, r.Client, key)
	if err != nil || cluster == nil || cluster.Spec.ControlPlaneRef.Kind != "OpenshiftAssistedControlPlane" ||
		annotations.IsPaused(cluster, machine) {
		return &scope{}, err
	}
	ref := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
	cp, err := kube.GetOrNil[controlplanev1.OpenshiftAssistedControlPlane](ctx, r.Client, ref)
	if err != nil || cp == nil {
		return &scope{}, err
	}
	// The bootstrap provider names the host after its Machine.
	node, err := r.Nodes.Named(ctx, key, machine.Name, r.controller)
	return &scope{machine: machine, cluster: key, controlPlane: cp, node: node}, err
}
