// SPDX-License-Identifier: Apache-2.0

// Package node gives the Nodes of installed clusters the provider IDs of their Machines, by which Cluster API finds them. Metal3 does that
// for its own Machines; of other infrastructure nobody does, because the kubelet of OpenShift knows no provider ID on bare metal
// (docs/adr/0005).
package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// controllerName is the controller's name in logs and metrics.
const controllerName = "nodeproviderid"

// Everything in the installed cluster is done with its own credentials.
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler gives the Node of one Machine its provider ID.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// Nodes finds and changes Nodes of installed clusters.
	Nodes workload.Nodes
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the reconciler to Machines whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string

	// controller gets the events of installed clusters.
	controller capicontrollerutil.Controller
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(
	ctx context.Context, mgr ctrl.Manager, clusters clustercache.ClusterCache, options controller.Options,
) error {
	c, err := capicontrollerutil.NewControllerManagedBy(mgr, ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)).
		For(&clusterv1.Machine{}, builder.WithPredicates(predicate.NewPredicateFuncs(waits))).
		Named(controllerName).
		WithOptions(options).
		WatchesRawSource(clusters.GetClusterSource(controllerName, r.waiting)).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	r.controller = c
	return nil
}

// waits reports whether a Machine of infrastructure other than Metal3 has its provider ID and no Node yet.
func waits(o client.Object) bool {
	m, ok := o.(*clusterv1.Machine)
	return ok && m.Spec.ProviderID != "" && !m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() &&
		m.Spec.Bootstrap.ConfigRef.Kind == "OpenshiftAssistedConfig" && m.Spec.Bootstrap.ConfigRef.APIGroup == bootstrapv1.GroupVersion.Group &&
		!metal3.IsMachineRef(m.Spec.InfrastructureRef)
}

// waiting are the Machines of a Cluster that wait for their Nodes: the Cluster has just been connected.
func (r *Reconciler) waiting(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := &clusterv1.MachineList{}
	err := r.Client.List(
		ctx, list, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()},
	)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Machines to find those that wait for their Nodes")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if waits(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile sets the provider ID of the Node of one Machine, once. A provider ID that a Node has is never changed: the API server refuses
// it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	machine := &clusterv1.Machine{}
	if err := r.Client.Get(ctx, req.NamespacedName, machine); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !waits(machine) || r.WatchFilter != "" && !labels.HasWatchLabel(machine, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Spec.ControlPlaneRef.Kind != "OpenshiftAssistedControlPlane" || annotations.IsPaused(cluster, machine) {
		return ctrl.Result{}, nil
	}
	// The bootstrap provider names the host after its Machine.
	node, err := r.Nodes.Named(ctx, key, machine.Name, r.controller)
	if err != nil || node == nil || node.CreationTimestamp.Before(&machine.CreationTimestamp) {
		return ctrl.Result{}, err // An older Node is that of an earlier Machine of this name.
	}
	switch node.Spec.ProviderID {
	case machine.Spec.ProviderID:
		return ctrl.Result{}, nil
	case "":
		ctrl.LoggerFrom(ctx).
			Info("Setting the provider ID of a Node", "Cluster", klog.KObj(cluster), "Node", node.Name, "providerID", machine.Spec.ProviderID)
		err := r.Nodes.SetProviderID(ctx, key, node, machine.Spec.ProviderID)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil // The change of the Node triggers the next pass.
		}
		return ctrl.Result{}, err
	default:
		r.Recorder.Eventf(
			machine, nil, corev1.EventTypeWarning, controlplanev1.EventProviderIDMismatch, "SetProviderID",
			"Node %s in the installed cluster has spec.providerID %s and Machine %s has %s, so Cluster API does not find the Node: delete the "+
				"Machine",
			node.Name, node.Spec.ProviderID, machine.Name, machine.Spec.ProviderID,
		)
		return ctrl.Result{}, nil
	}
}
