// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// confirmOver reads without the cache whether what the pass misses is gone, and whether the Cluster still wants it: a move pauses the
// Cluster first. What the cache does not show yet triggers a pass later. The control plane itself needs no such look: it is only written as
// it was read.
func (r *Reconciler) confirmOver(ctx context.Context, v *view.View) (bool, error) {
	cluster := &clusterv1.Cluster{}
	exists, err := kube.Get(ctx, r.APIReader, v.ClusterKey(), cluster)
	if err != nil || !exists || cluster.UID != v.Cluster.UID || !cluster.DeletionTimestamp.IsZero() ||
		annotations.IsPaused(cluster, v.ControlPlane) {
		return false, err
	}
	var missed []client.Object
	if v.Install.ClusterDeployment == nil {
		missed = append(missed, &hivev1.ClusterDeployment{})
	}
	if v.Install.AgentClusterInstall == nil {
		missed = append(missed, &hiveext.AgentClusterInstall{})
	}
	key := client.ObjectKeyFromObject(v.ControlPlane)
	for _, o := range missed {
		if exists, err := kube.Get(ctx, r.APIReader, key, o); err != nil || exists {
			return false, err
		}
	}
	return true, nil
}

// cleanUpAttempt removes the objects of an earlier attempt. Machines come first: once the AgentClusterInstall is gone, nobody knows which
// workers were part of the installation.
func (r *Reconciler) cleanUpAttempt(ctx context.Context, v *view.View, d plan.AttemptDecision) error {
	if !d.Retrying {
		return nil
	}
	if err := r.deleteMachines(ctx, v, d.Stale, "its installation failed or was given up, and the next one begins"); err != nil {
		return err
	}
	return r.deleteInstall(ctx, v, "the next attempt begins")
}
