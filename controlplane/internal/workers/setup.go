// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/served"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	byCluster := handler.EnqueueRequestsFromMapFunc(served.ByLabel)
	b := capicontrollerutil.NewControllerManagedBy(mgr, ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)).
		For(&clusterv1.Cluster{}).
		Named(controllerName).
		Watches(&clusterv1.MachineDeployment{}, byCluster, wishes).
		Watches(&clusterv1.MachineSet{}, byCluster, wishes).
		Watches(&clusterv1.Machine{}, byCluster, arrivals).
		Watches(&controlplanev1.OpenshiftAssistedControlPlane{}, byCluster, served.Resumed)
	if _, err := manager.Build(ctx, b, options, r); err != nil {
		return fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	return nil
}

// wishes lets the changes of a MachineDeployment or MachineSet through, but none of its status.
var wishes = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// arrivals lets the events of a worker through after which it, or its MachineSet, may get another version.
var arrivals = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isWorker(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return isWorker(e.ObjectNew) && stateOf(e.ObjectOld) != stateOf(e.ObjectNew)
	},
	// Others may have waited for it.
	DeleteFunc:  func(e event.DeleteEvent) bool { return isWorker(e.Object) },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func isWorker(o client.Object) bool {
	_, controlPlane := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return !controlPlane
}

// state is what decide looks at in a Machine.
type state struct {
	kubelet, version string
	deleted, paused  bool
	controller       types.UID
}

func stateOf(o client.Object) state {
	m, ok := o.(*clusterv1.Machine)
	if !ok {
		return state{}
	}
	s := state{
		kubelet: view.KubeletVersion(m), version: m.Spec.Version, deleted: !m.DeletionTimestamp.IsZero(), paused: annotations.HasPaused(m),
	}
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		s.controller = owner.UID
	}
	return s
}
