// SPDX-License-Identifier: Apache-2.0

// Package csr approves the requests of kubelets for serving certificates in installed clusters, for Nodes of the Cluster's Machines only.
// In a cluster without MachineAPI nobody else does, and without a certificate there are no logs of Pods after 30 days (DESIGN D7).
package csr

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	"github.com/capi-openshift/agent-providers/controlplane/internal/served"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// controllerName is the controller's name in logs and metrics.
const controllerName = "kubeletservingcertificates"

// reportedSize is the number of refused requests whose event is remembered. A cluster keeps requests for a day.
const reportedSize = 4096

// Everything in the installed cluster is done with its own credentials.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=list;watch
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler approves requests in the installed clusters of control planes, one Cluster at a time.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// Certificates looks after requests in installed clusters.
	Certificates workload.Certificates
	// Identity tells which cluster answers.
	Identity workload.Identity
	// Gate tells which CRDs are not served yet.
	Gate interface {
		Missing(crds ...string) []string
	}
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

// Reconcile approves what can be approved in one installed cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster, cp, err := served.Cluster(ctx, r.Client, req.NamespacedName, r.WatchFilter)
	if err != nil || cp == nil {
		return ctrl.Result{}, err
	}
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("OpenshiftAssistedControlPlane", klog.KObj(cp)))
	s, err := r.observe(ctx, cluster, cp)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe the certificate requests of Cluster %s: %w", klog.KObj(cluster), err)
	}
	d := decide(s)
	d.refuse = r.untold(d.refuse)
	if len(d.approve)+len(d.refuse) > 0 {
		if err := served.SameCluster(ctx, r.Identity, req.NamespacedName, cp); err != nil {
			return ctrl.Result{}, err
		}
	}
	err = r.apply(ctx, s, d)
	r.report(s, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	// Nodes are not watched: one whose addresses have just changed reports them within minutes.
	return ctrl.Result{RequeueAfter: d.lookAgain}, nil
}
