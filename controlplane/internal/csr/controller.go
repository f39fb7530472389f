// SPDX-License-Identifier: Apache-2.0

// Package csr approves the requests of kubelets for serving certificates in installed clusters, for Nodes of the Cluster's Machines only.
// In a cluster without MachineAPI nobody else does, and without a certificate there are no logs of Pods after 30 days (DESIGN D7).
package csr

import (
	"context"
	"fmt"
	"time"

	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// controllerName is the controller's name in logs and metrics.
const controllerName = "kubeletservingcertificates"

// reportedSize is the number of refused requests whose event is remembered. A cluster keeps requests for a day.
const reportedSize = 4096

// Everything in the installed cluster is done with its own credentials.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler approves requests in the installed clusters of control planes, one Cluster at a time.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// Certificates looks after requests in installed clusters.
	Certificates workload.Certificates
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the reconciler to control planes whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string

	// controller gets the events of installed clusters.
	controller capicontrollerutil.Controller
	// reported are the UIDs of requests that an event has told of; it does nothing but keep events from being repeated.
	reported *lru.Cache
	// now is the clock; every pass reads it once.
	now func() time.Time
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(
	ctx context.Context, mgr ctrl.Manager, clusters clustercache.ClusterCache, options controller.Options,
) error {
	r.reported, r.now = lru.New(reportedSize), time.Now
	c, err := capicontrollerutil.NewControllerManagedBy(mgr, ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)).
		For(&clusterv1.Cluster{}).
		Named(controllerName).
		WithOptions(options).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), nodes).
		// One that is no longer paused, but none of the changes of its status.
		Watches(&controlplanev1.OpenshiftAssistedControlPlane{}, handler.EnqueueRequestsFromMapFunc(ofControlPlane), unpaused).
		WatchesRawSource(clusters.GetClusterSource(controllerName, itself)).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	r.controller = c
	return nil
}

// unpaused lets the events through after which requests of a control plane's cluster may be approved that were left alone before.
var unpaused = predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})

// nodes lets the events through by which a Machine gets its Node: a request that came before is approved then.
var nodes = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return nodeOf(e.Object) != "" },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return nodeOf(e.ObjectNew) != "" && nodeOf(e.ObjectOld) != nodeOf(e.ObjectNew)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func nodeOf(o client.Object) string {
	if m, ok := o.(*clusterv1.Machine); ok {
		return m.Status.NodeRef.Name
	}
	return ""
}

// ofMachine maps a Machine to its Cluster.
func ofMachine(_ context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}}}
}

// ofControlPlane maps a control plane to its Cluster.
func ofControlPlane(_ context.Context, o client.Object) []reconcile.Request {
	cluster := o.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: cluster}}}
}

// itself maps a Cluster to itself.
func itself(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// Reconcile approves what can be approved in one installed cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Spec.ControlPlaneRef.Kind != "OpenshiftAssistedControlPlane" {
		return ctrl.Result{}, nil
	}
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
	if err := r.Client.Get(ctx, key, cp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(cp, r.WatchFilter) || annotations.IsPaused(cluster, cp) || !cp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("OpenshiftAssistedControlPlane", klog.KObj(cp)))
	s, err := r.observe(ctx, cluster, cp)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe the certificate requests of Cluster %s: %w", klog.KObj(cluster), err)
	}
	d := decide(s)
	if err := kerrors.NewAggregate(r.apply(ctx, s, d)); err != nil {
		return ctrl.Result{}, err
	}
	// Nodes are not watched: one whose addresses have just changed reports them within minutes.
	return ctrl.Result{RequeueAfter: d.lookAgain}, nil
}
