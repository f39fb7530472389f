// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const cdFinalizer = "clusterdeployments.agent-install.openshift.io/ai-deprovision"

func (s *Simulator) setupClusterDeployment(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("assisted-clusterdeployment").
		For(&hivev1.ClusterDeployment{}).
		Watches(&hiveext.AgentClusterInstall{}, handler.EnqueueRequestsFromMapFunc(deploymentOf)).
		WithOptions(s.controllerOptions()).
		Complete(reconcile.Func(s.reconcileClusterDeployment))
}

// deploymentOf is the ClusterDeployment that an AgentClusterInstall names.
func deploymentOf(_ context.Context, obj client.Object) []reconcile.Request {
	aci, ok := obj.(*hiveext.AgentClusterInstall)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: aci.Namespace, Name: aci.Spec.ClusterDeploymentRef.Name,
	}}}
}

// reconcileClusterDeployment keeps the finalizer and, on deletion, takes the AgentClusterInstall down first.
func (s *Simulator) reconcileClusterDeployment(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	if result, down := s.paused(); down {
		return result, nil
	}
	cd := &hivev1.ClusterDeployment{}
	if err := s.client.Get(ctx, req.NamespacedName, cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	installs, err := s.clusterInstalls(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if cd.DeletionTimestamp.IsZero() {
		// Without an AgentClusterInstall the service does not know yet that the ClusterDeployment is its own.
		if len(installs) == 0 {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, s.ensureFinalizer(ctx, cd, cdFinalizer)
	}
	for i := range installs {
		if err := s.client.Delete(ctx, &installs[i]); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("cannot delete AgentClusterInstall %s: %w", installs[i].Name, err)
		}
	}
	if len(installs) > 0 {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, s.dropFinalizer(ctx, cd, cdFinalizer)
}
