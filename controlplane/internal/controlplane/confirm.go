// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// What cannot be undone is confirmed without the cache, which may be late. What the cache does not show yet triggers a pass later.

// confirmSpec reports whether the spec by which a Machine is deleted is the newest: with one from before a scale-up, a Machine would be too
// many.
func (r *Reconciler) confirmSpec(ctx context.Context, v *view.View) (bool, error) {
	current, err := r.current(ctx, v)
	return current != nil && current.Generation == v.ControlPlane.Generation, err
}

// confirmNotInstalled reports whether no cluster is recorded by now whose etcd would miss a host that goes at once. One that goes with its
// control plane is missed by nobody.
func (r *Reconciler) confirmNotInstalled(ctx context.Context, v *view.View) (bool, error) {
	if v.Life == view.Deleting {
		return true, nil
	}
	current, err := r.current(ctx, v)
	if current == nil {
		return false, err
	}
	_, installed := view.InstalledOf(current)
	return !installed && !ptr.Deref(current.Status.Initialization.ControlPlaneInitialized, false), nil
}

// current is the control plane as the API server has it; nil when it is gone.
func (r *Reconciler) current(ctx context.Context, v *view.View) (*controlplanev1.OpenshiftAssistedControlPlane, error) {
	current, err := kube.GetOrNil[controlplanev1.OpenshiftAssistedControlPlane](ctx, r.APIReader, client.ObjectKeyFromObject(v.ControlPlane))
	if err != nil || current == nil || current.UID != v.ControlPlane.UID {
		return nil, err
	}
	return current, nil
}

// confirmUnused reports whether no host of a Machine that exists is bound to the ClusterDeployment: assisted-service would take it from its
// cluster.
func (r *Reconciler) confirmUnused(ctx context.Context, v *view.View) (bool, error) {
	machines := &clusterv1.MachineList{}
	if err := r.APIReader.List(ctx, machines, inCluster(v)...); err != nil {
		return false, fmt.Errorf("read the Machines of Cluster %s before the ClusterDeployment is deleted: %w", v.ClusterKey(), err)
	}
	if len(machines.Items) == 0 || !r.served(assisted.CRDAgents) {
		return true, nil
	}
	claims := sets.New[string]()
	for i := range machines.Items {
		claims.Insert(assisted.Claim(&machines.Items[i]))
	}
	agents := &assisted.AgentList{}
	if err := r.APIReader.List(ctx, agents, client.InNamespace(v.ControlPlane.Namespace)); err != nil {
		return false, fmt.Errorf("read the Agents before the ClusterDeployment is deleted: %w", err)
	}
	for i := range agents.Items {
		a := &agents.Items[i]
		if a.BoundTo(v.ControlPlane.Namespace, v.ControlPlane.Name) && claims.Has(a.Annotations[bootstrapv1.ClaimAnnotation]) {
			return false, nil
		}
	}
	return true, nil
}
