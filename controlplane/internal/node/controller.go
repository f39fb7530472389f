// SPDX-License-Identifier: Apache-2.0

// Package node gives the Nodes of installed clusters the provider IDs of their Machines, by which Cluster API finds them. Metal3 does that
// for its own Machines; of other infrastructure nobody does, because the kubelet of OpenShift knows no provider ID on bare metal
// (docs/adr/0005).
package node

import (
	"context"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	"github.com/capi-openshift/agent-providers/controlplane/internal/served"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// controllerName is the controller's name in logs and metrics.
const controllerName = "nodeproviderid"

// Everything in the installed cluster is done with its own credentials.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler gives the Node of one Machine its provider ID.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// Nodes finds and changes Nodes of installed clusters.
	Nodes workload.Nodes
	// Identity tells which cluster answers.
	Identity workload.Identity
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the reconciler to Machines whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string

	// controller gets the events of installed clusters.
	controller capicontrollerutil.Controller
}

// Reconcile sets the provider ID of the Node of one Machine, once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(s)
	if d == (decision{}) {
		return ctrl.Result{}, nil
	}
	if err := served.SameCluster(ctx, r.Identity, s.cluster, s.controlPlane); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.apply(ctx, s, d); err != nil {
		return ctrl.Result{}, err
	}
	r.report(s, d)
	return ctrl.Result{}, nil
}
