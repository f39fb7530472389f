// SPDX-License-Identifier: Apache-2.0

// Package leftovers deletes what a control plane leaves behind that vanished without its finalizer, as `clusterctl move` makes it vanish
// from the management cluster that it is moved away from: ClusterDeployment, AgentClusterInstall and ClusterImageSet. Garbage collection
// cannot do that. It would delete the ClusterDeployment while Agents are bound to it, and assisted-service unbinds those: it reboots a Node
// of the running cluster into the discovery image when it can reach it (ASSISTED 1.2, docs/adr/0002).
package leftovers

import (
	"context"
	"errors"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// What a deletion depends on is read past the cache.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterimagesets,verbs=get;delete
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=get;delete

// Reconciler looks after ClusterDeployments that were made for a control plane.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// APIReader confirms without the cache what a deletion depends on.
	APIReader client.Reader
	// Namespace is the only one that the manager serves; empty when it serves all.
	Namespace string
	// WatchFilter restricts the ClusterDeployments that are looked after to those whose label cluster.x-k8s.io/watch-filter has this value;
	// empty is all. They have the label of their control plane.
	WatchFilter string
	// Gate knows which CRDs are served.
	Gate *manager.Gate
	// Recorder records events.
	Recorder events.EventRecorder
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "leftovers")
	b := capicontrollerutil.NewControllerManagedBy(mgr, log).
		Named("leftovers").
		// A ClusterDeployment has the name of its control plane. Of control planes only the end matters, of Clusters also spec.paused.
		Watches(&controlplanev1.OpenshiftAssistedControlPlane{}, &handler.EnqueueRequestForObject{}, ends).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), predicate.GenerationChangedPredicate{})
	c, err := manager.Build(ctx, b, options, r)
	if err != nil {
		return fmt.Errorf("build controller leftovers: %w", err)
	}
	cache := mgr.GetCache()
	return errors.Join(
		r.Gate.Watch(
			c, assisted.CRDClusterDeployments, source.Kind(cache, client.Object(&hivev1.ClusterDeployment{}), &handler.EnqueueRequestForObject{}),
		),
		r.Gate.Watch(
			c, assisted.CRDAgents,
			source.Kind(cache, client.Object(&assisted.Agent{}), handler.EnqueueRequestsFromMapFunc(assisted.ToClusterDeployment), releases),
		),
	)
}

// ends lets the deletion of an object through.
var ends = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// releases lets the events through by which an Agent stops being bound, and none of its frequent status changes.
var releases = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(e event.UpdateEvent) bool { return isBound(e.ObjectOld) && !isBound(e.ObjectNew) },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// Reconcile deletes a ClusterDeployment of ours whose control plane does not exist any more.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if len(
		r.Gate.Missing(assisted.CRDClusterDeployments, assisted.CRDAgentClusterInstalls, assisted.CRDClusterImageSets, assisted.CRDAgents),
	) > 0 {
		return ctrl.Result{}, nil
	}
	deployment, err := kube.GetOrNil[hivev1.ClusterDeployment](ctx, r.Client, req.NamespacedName)
	if err != nil || deployment == nil {
		return ctrl.Result{}, err
	}
	if owner(deployment) == "" || !deployment.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(deployment, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	// The cache first: it answers for every ClusterDeployment of a living control plane, without a request.
	for _, reader := range []client.Reader{r.Client, r.APIReader} {
		remains, err := observe(ctx, reader, r.Namespace, deployment)
		if err != nil {
			return ctrl.Result{}, err
		}
		if why := remains.keep(); why != "" {
			ctrl.LoggerFrom(ctx).V(4).Info("Keeping ClusterDeployment", "reason", why)
			return ctrl.Result{}, nil // What keeps it is watched.
		}
	}
	return ctrl.Result{}, r.delete(ctx, deployment)
}

// delete deletes the ClusterDeployment last: it is what the next pass begins with after a crash.
func (r *Reconciler) delete(ctx context.Context, deployment *hivev1.ClusterDeployment) error {
	key := client.ObjectKeyFromObject(deployment)
	uid := owner(deployment)
	imageSet, install := &hivev1.ClusterImageSet{}, &hiveext.AgentClusterInstall{}
	for _, leftover := range []struct {
		object client.Object
		key    types.NamespacedName
	}{
		{imageSet, types.NamespacedName{Name: view.ImageSetName(key)}}, {install, key}, {deployment, key},
	} {
		exists, err := kube.Get(ctx, r.APIReader, leftover.key, leftover.object)
		if err != nil {
			return err
		}
		if !exists || owner(leftover.object) != uid {
			continue
		}
		if err := kube.Delete(ctx, r.Client, leftover.object, "its control plane does not exist any more"); err != nil {
			return err
		}
	}
	r.Recorder.Eventf(deployment, nil, corev1.EventTypeNormal, controlplanev1.EventLeftoversDeleted, "DeleteLeftovers",
		"Deleted what control plane %s, which does not exist any more, left behind", deployment.Name)
	return nil
}

// ofCluster is every ClusterDeployment of a Cluster.
func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	if len(r.Gate.Missing(assisted.CRDClusterDeployments)) > 0 {
		return nil
	}
	return kube.Requests(ctx, r.Client, &hivev1.ClusterDeploymentList{}, kube.Every[*hivev1.ClusterDeployment],
		client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetName()})
}

func isBound(o client.Object) bool {
	agent, ok := o.(*assisted.Agent)
	return ok && agent.Spec.ClusterDeploymentName != nil
}
