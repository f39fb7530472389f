// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	clusterFinalizer     = "metal3cluster." + infrastructureGroup
	conditionInfraReady  = "BaremetalInfrastructureReady"
	reasonNotPaused      = "NotPaused"
	controllerNamePrefix = "sim-metal3-"
	firstBackoff         = 5 * time.Millisecond
)

// clusterReconciler plays CAPM3's Metal3Cluster controller.
type clusterReconciler struct{ *config }

func setupClusters(mgr ctrl.Manager, cfg *config) error {
	r := &clusterReconciler{config: cfg}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerNamePrefix+"cluster").
		For(cfg.shape.newObject(kindCluster)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(infrastructureOf)).
		WithOptions(controllerOptions(cfg)).
		Complete(cfg.faults.whilePresent(r))
}

func infrastructureOf(_ context.Context, o client.Object) []reconcile.Request {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok || cluster.Spec.InfrastructureRef.Kind != kindCluster {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.InfrastructureRef.Name}}}
}

// Reconcile declares the Metal3Cluster provisioned once CAPI core has made the Cluster its owner: CAPM3 does nothing for
// the endpoint but demand that it is there.
func (r *clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.load(ctx, kindCluster, req.NamespacedName)
	if err != nil || o == nil {
		return ctrl.Result{}, err
	}
	o.summarized = []string{conditionInfraReady}
	o.deprecatedSummarized = o.summarized
	owner := ownerOf(o, "Cluster")
	if !o.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(o, clusterFinalizer)
		return ctrl.Result{}, o.flush(ctx)
	}
	if owner == "" {
		return ctrl.Result{}, o.flush(ctx)
	}
	cluster := &clusterv1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: owner}, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isPaused(cluster, o) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.provision(ctx, o)
}

// provision writes Paused on its own first, as CAPM3 does: the next pass, woken by that write, does the rest.
func (r *clusterReconciler) provision(ctx context.Context, o *object) error {
	if !o.hasCondition(conditionPaused, metav1.ConditionFalse) && r.shape.conditions != nil {
		o.setCondition(conditionPaused, metav1.ConditionFalse, reasonNotPaused, "")
		return o.flush(ctx)
	}
	controllerutil.AddFinalizer(o, clusterFinalizer)
	o.setCondition(conditionInfraReady, metav1.ConditionTrue, conditionReady, "")
	o.setDeprecated(clusterv1.Condition{Type: conditionInfraReady, Status: "True"})
	if err := unstructured.SetNestedField(o.Object, true, r.shape.provisioned...); err != nil {
		return err
	}
	return o.flush(ctx)
}

// isPaused tells whether Cluster API's pause concerns the object.
func isPaused(cluster *clusterv1.Cluster, o client.Object) bool {
	return cluster.Spec.Paused != nil && *cluster.Spec.Paused || hasPausedAnnotation(o)
}

func hasPausedAnnotation(o client.Object) bool {
	_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

// ownerOf returns the name of the object's owner of a Cluster API core kind, empty when it has none.
func ownerOf(o client.Object, kind string) string {
	for _, ref := range o.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil && gv.Group == clusterv1.GroupVersion.Group && ref.Kind == kind {
			return ref.Name
		}
	}
	return ""
}

// controllerOptions allows many simulators in one process, and caps the back-off after errors at the same multiple of the Node poll as in
// CAPM3 (1000 s to 30 s), so that an error of long ago does not freeze a fast simulation. The priority queue of controller-runtime up to
// v0.24 may hang when it is shut down (its issue 3538).
func controllerOptions(cfg *config) controller.Options {
	const backoffPerNodePoll = 33
	return controller.Options{
		SkipNameValidation: ptr.To(true),
		UsePriorityQueue:   ptr.To(false),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			firstBackoff, backoffPerNodePoll*cfg.Durations.NodePoll),
	}
}
