// SPDX-License-Identifier: Apache-2.0

// Package workers lets MachineDeployments follow the upgrade of an installed cluster. OpenShift upgrades the Nodes of workers in place, of
// which Cluster API knows nothing: it would wait for ever for Machines of the new version. So the version of each Machine, and then that of
// its MachineSet, is set to what the Nodes run already and the MachineDeployment asks for; in a topology, that of the MachineDeployment is
// set too. No server is installed anew (DESIGN D33, docs/adr/0008).
package workers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/served"
)

// changedRetryInterval is after what time an object is looked at again that has changed between its read and its write: the watches let
// none of the changes through that mean nothing to a version, and Cluster API writes to a Machine at the same moment.
const changedRetryInterval = time.Second

// controllerName is the controller's name in logs and metrics.
const controllerName = "workerversions"

// It is the only code that writes MachineDeployments and MachineSets, and Machines that are not of the control plane.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines;machinesets;machinedeployments,verbs=list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler lets the MachineDeployments of one Cluster follow the versions of its Nodes.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the reconciler to control planes whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string
}

// Reconcile writes the versions of Machines, those of MachineSets whose Machines have theirs, and those of MachineDeployments of a
// topology. Each write is watched and triggers the next pass, so a pass needs to know nothing of the one before it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster, cp, err := served.Cluster(ctx, r.Client, req.NamespacedName, r.WatchFilter)
	if err != nil || cp == nil || !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("OpenshiftAssistedControlPlane", klog.KObj(cp)))
	groups, err := r.observe(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe the workers of Cluster %s: %w", klog.KObj(cluster), err)
	}
	followed, changed, err := r.apply(ctx, decide(cluster, groups))
	r.report(followed)
	if changed {
		return ctrl.Result{RequeueAfter: changedRetryInterval}, err
	}
	return ctrl.Result{}, err
}
