// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/labels"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// crdGate tells which CRDs are not served yet.
type crdGate interface {
	Missing(crds ...string) []string
}

// Reconciler reconciles OpenshiftAssistedControlPlanes. It holds no state of any of them.
type Reconciler struct {
	// Client reads from the manager's cache, except Secrets, and writes.
	Client client.Client
	// APIReader reads from the API server, for the few decisions that a stale cache would get wrong.
	APIReader client.Reader
	// Kubeconfigs reads <cluster>-kubeconfig Secrets from the cache.
	Kubeconfigs client.Reader
	// InstallerKubeconfigs reads the Secrets of installer kubeconfigs from the cache.
	InstallerKubeconfigs client.Reader
	// Infrastructure reads infrastructure machines and their templates, of any provider.
	Infrastructure *infrastructure.Reader
	// Identity tells which cluster answers, and Health how it is.
	Identity workload.Identity
	Health   workload.Health
	// Etcd asks the installed cluster's etcd and removes its members, and Nodes deletes the Nodes of their hosts.
	Etcd  workload.Etcd
	Nodes workload.ControlPlaneNodes
	// Upgrades asks the installed cluster for another release.
	Upgrades workload.Upgrades
	// Credentials issues tokens of the installed cluster, each for TokenLifetime.
	Credentials   workload.Credentials
	TokenLifetime time.Duration
	// Releases tells what release images are; nil asks no registry.
	Releases Releases
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the reconciler to control planes whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string
	// RemoteConditionsGracePeriod is how long a cluster whose API does not answer is believed to be available.
	RemoteConditionsGracePeriod time.Duration

	// gate tells which kinds of hive and assisted-service are served.
	gate crdGate
	// now is the clock; every pass reads it once.
	now func() time.Time
	// controller defers a pass until the cache has seen what the pass before wrote.
	controller capicontrollerutil.Controller
	// leading tells since when this manager acts.
	leading manager.Leadership
}

// Infrastructure machines are those of Metal3. A user extends the role for another infrastructure provider (InfrastructureRoleLabel).
// Only what is read past the cache is got; informers list on API servers that do not stream lists.
// Deleting is allowed on templates and Secrets because their owners are set: the API server refuses that to who cannot delete the object.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments;machinepools;machinesets,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machinetemplates,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterimagesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Reconcile brings one control plane closer to its spec, in the order of Cluster API's own control plane provider: its readers know it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, cp); err != nil {
		if r.Releases != nil && apierrors.IsNotFound(err) {
			r.Releases.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(cp, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	cluster, err := r.ownerCluster(ctx, cp)
	if err != nil {
		return ctrl.Result{}, err
	}
	if cluster == nil && cp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // Core sets the owner, which triggers a pass.
	}
	if cluster != nil {
		ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("Cluster", klog.KObj(cluster)))
	}
	if err := r.ensureFinalizer(ctx, cp); err != nil {
		return ctrl.Result{}, err
	}
	before := cp.DeepCopy()
	if isPaused, err := kube.HoldPaused(ctx, r.Client, cluster, cp); err != nil || isPaused {
		return ctrl.Result{}, err
	}
	return r.pass(ctx, before, cp, cluster)
}

// pass reads, decides and writes, and computes the status from what it has found, whether writing succeeded or not. before is the control
// plane as it was read.
func (r *Reconciler) pass(
	ctx context.Context, before, cp *controlplanev1.OpenshiftAssistedControlPlane, cluster *clusterv1.Cluster,
) (_ ctrl.Result, reterr error) {
	v, err := r.observe(ctx, cp, cluster)
	if r.stillFills(err) {
		ctrl.LoggerFrom(ctx).V(2).Info("Waiting for the cache to be filled", "error", err.Error())
		return ctrl.Result{RequeueAfter: manager.FillingRetryInterval}, nil
	}
	if err != nil {
		// Without facts the conditions of the pass before are the best there are, and the generation was not observed.
		tellUnread(cp, err)
		_, unwritten := r.patchStatus(ctx, before, cp)
		return ctrl.Result{}, kerrors.NewAggregate([]error{err, unwritten})
	}
	d, o := decide(v), &outcomes{}
	defer func() {
		if reterr == nil && (recordedAlone(v, d, o) || o.begun) {
			return // What this pass has written triggers the next one, which writes the status.
		}
		r.updateStatus(v, d, o)
		cp.Status.ObservedGeneration = cp.Generation
		if o.written != "" {
			before.ResourceVersion, cp.ResourceVersion = o.written, o.written
		}
		alone, err := r.patchStatus(ctx, before, cp)
		if alone {
			countStatus(v, before, cp)
		}
		reterr = kerrors.NewAggregate([]error{reterr, err})
		if reterr == nil && d.deletion.step == plan.DeletionDone {
			reterr = r.removeFinalizer(ctx, cp) // Last: there is no status to write once the object is gone.
		}
	}()
	if v.Life == view.Deleting {
		err := kube.OutcomeOf(r.applyDeletion(ctx, v, d, o)).Err()
		return ctrl.Result{RequeueAfter: requeueAfter(v, d, o)}, kerrors.NewAggregate([]error{v.Workload.Problem, err})
	}
	o = r.apply(ctx, v, d)
	return ctrl.Result{RequeueAfter: requeueAfter(v, d, o)}, kerrors.NewAggregate([]error{v.Workload.Problem, o.err()})
}

// stillFills reports whether a read failed because the manager has only begun to fill its cache.
func (r *Reconciler) stillFills(err error) bool { return r.leading.StillFills(err, r.now()) }

// ensureFinalizer stores the finalizer, before which nothing may be created (CONTRACT CP-68).
func (r *Reconciler) ensureFinalizer(ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) error {
	added, err := finalizers.EnsureFinalizer(ctx, r.Client, cp, controlplanev1.ControlPlaneFinalizer)
	if added {
		r.wroteControlPlane(cp)
	}
	return err
}

// recordedAlone reports whether the pass may leave the status of the control plane to the next one: it has recorded the installed cluster
// in an annotation. That patch triggers the next pass, which asks the cluster, and writes in one status that it is installed and answers.
func recordedAlone(v *view.View, d decision, o *outcomes) bool {
	return d.install.record != "" && o.written != "" && !v.Initialized()
}

// ownerCluster returns the owner, or nil when there is none or it is gone.
func (r *Reconciler) ownerCluster(ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) (*clusterv1.Cluster, error) {
	cluster, err := util.GetOwnerCluster(ctx, r.Client, cp.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the owner Cluster of OpenshiftAssistedControlPlane %s: %w", klog.KObj(cp), err)
	}
	return cluster, nil
}

// patchStatus writes what the pass changed in status; alone reports whether it has, and what is stored now is known to differ from before
// by that alone.
func (r *Reconciler) patchStatus(ctx context.Context, before, cp *controlplanev1.OpenshiftAssistedControlPlane) (alone bool, err error) {
	if equality.Semantic.DeepEqual(before.Status, cp.Status) {
		return false, nil
	}
	ctx, cancel := manager.ForStatus(ctx)
	defer cancel()
	if alone, err = kube.PatchStatus(ctx, r.Client, before, cp, ownedConditions); err != nil {
		return false, fmt.Errorf("patch the status of OpenshiftAssistedControlPlane %s: %w", klog.KObj(cp), err)
	}
	if cp.ResourceVersion == before.ResourceVersion {
		// Somebody had changed the control plane, so that the status was written in several patches, which tell no version.
		written := &controlplanev1.OpenshiftAssistedControlPlane{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(cp), written); err != nil {
			return alone, client.IgnoreNotFound(err)
		}
		cp.ResourceVersion = written.ResourceVersion
	}
	r.wroteControlPlane(cp)
	return alone, nil
}

// wroteControlPlane defers the next pass until the cache has seen the control plane: it would write what has not changed once more.
func (r *Reconciler) wroteControlPlane(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	r.controller.DeferNextReconcileUntilCacheUpToDate(cp,
		capicontrollerutil.StructuredObject(controlplanev1.GroupVersion, "OpenshiftAssistedControlPlane"), cp.ResourceVersion)
}
