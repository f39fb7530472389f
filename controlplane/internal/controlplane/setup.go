// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
	"github.com/capi-openshift/agent-providers/controlplane/internal/metrics"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// controllerName is the controller's name in logs, metrics and events.
const controllerName = "openshiftassistedcontrolplane"

// CRDs are those that are waited for; the kinds of hive and assisted-service are watched once they are served.
func CRDs() []string {
	return append([]string{metal3.CRDMachines, metal3.CRDBareMetalHosts}, crdsNeeded...)
}

// Watches is what the reconciler watches besides the manager's cache.
type Watches struct {
	// Gate starts watches on kinds of hive and assisted-service.
	Gate *manager.Gate
	// ClusterCache tells when an installed cluster connects, disconnects or stops answering.
	ClusterCache clustercache.ClusterCache
	// InstallerKubeconfigs is the cache of the Secrets that hold installer kubeconfigs.
	InstallerKubeconfigs cache.Cache
	// Releases tells of control planes whose release image is known better now; nil when no registry is asked.
	Releases <-chan event.GenericEvent
	// Options are the controller's options.
	Options controller.Options
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, w Watches) error {
	if r.Client == nil || r.APIReader == nil || r.Kubeconfigs == nil || r.InstallerKubeconfigs == nil || r.Infrastructure == nil ||
		r.Identity == nil || r.Health == nil || r.Etcd == nil || r.Nodes == nil || r.Credentials == nil || r.Recorder == nil {
		return fmt.Errorf("controller %s: clients, readers of the installed cluster and recorder must be set", controllerName)
	}
	r.gate, r.now = w.Gate, time.Now
	if err := index.AddAll(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	log := ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)
	byCluster := handler.EnqueueRequestsFromMapFunc(r.ofClusterObject)
	builder := capicontrollerutil.NewControllerManagedBy(mgr, log).
		For(&controlplanev1.OpenshiftAssistedControlPlane{}).
		Named(controllerName).
		// Machines of workers too: their number is asked for on day 1, and the deletion waits for them.
		Watches(&clusterv1.Machine{}, metrics.Machines(r.Client, byCluster)).
		Watches(&clusterv1.MachineSet{}, byCluster).
		Watches(&clusterv1.MachineDeployment{}, byCluster).
		Watches(&clusterv1.MachinePool{}, byCluster).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofKubeconfig)).
		WatchesRawSource(w.ClusterCache.GetClusterSource(controllerName, ofCluster,
			clustercache.WatchForProbeFailure(r.RemoteConditionsGracePeriod))).
		WatchesRawSource(source.Kind[client.Object](w.InstallerKubeconfigs, &corev1.Secret{},
			handler.EnqueueRequestsFromMapFunc(ofClusterDeploymentSecret)))
	if w.Releases != nil {
		builder.WatchesRawSource(source.Channel(w.Releases, &handler.EnqueueRequestForObject{}))
	}
	c, err := manager.Build(ctx, builder, w.Options, r)
	if err != nil {
		return fmt.Errorf("build controller %s: %w", controllerName, err)
	}
	r.controller = c
	return r.watchLate(ctx, mgr, w.Gate, c)
}

// watchLate watches the kinds whose CRDs may come later.
func (r *Reconciler) watchLate(ctx context.Context, mgr ctrl.Manager, gate *manager.Gate, c capicontrollerutil.Controller) error {
	log := mgr.GetLogger().WithValues("controller", controllerName)
	late := []struct {
		crd  string
		kind client.Object
		to   handler.MapFunc
		by   manager.Watcher
	}{
		{assisted.CRDClusterDeployments, &hivev1.ClusterDeployment{}, ofSameName, c},
		{assisted.CRDAgentClusterInstalls, &hiveext.AgentClusterInstall{}, ofSameName, c},
		{assisted.CRDClusterImageSets, &hivev1.ClusterImageSet{}, r.ofImageSet, c},
		{assisted.CRDAgents, &assisted.Agent{}, assisted.ToClusterDeployment, &indexing{
			Watcher: c, add: func() error { return index.Agents().AddTo(ctx, mgr.GetFieldIndexer()) },
		}},
	}
	for _, l := range late {
		src := source.Kind(
			mgr.GetCache(), l.kind, handler.EnqueueRequestsFromMapFunc(l.to), predicates.TypedResourceIsChanged[client.Object](mgr.GetScheme(), log),
		)
		if err := gate.Watch(l.by, l.crd, src); err != nil {
			return fmt.Errorf("watch the kind of %s: %w", l.crd, err)
		}
	}
	return gate.Resync(c, r.all)
}

// indexing is a controller that adds the index of a kind before it watches the kind, which can be indexed no earlier than it can be
// watched. The gate tries again what has failed, and an index is added only once.
type indexing struct {
	manager.Watcher
	add   func() error
	added bool
}

// Watch implements manager.Watcher.
func (i *indexing) Watch(src source.TypedSource[reconcile.Request]) error {
	if !i.added {
		if err := i.add(); err != nil {
			return err
		}
		i.added = true
	}
	return i.Watcher.Watch(src)
}

// all returns every control plane.
func (r *Reconciler) all(ctx context.Context) []reconcile.Request { return r.list(ctx) }

// list returns the control planes of the cache that the options select.
func (r *Reconciler) list(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	return kube.Requests(ctx, r.Client, &controlplanev1.OpenshiftAssistedControlPlaneList{},
		kube.Every[*controlplanev1.OpenshiftAssistedControlPlane], append(opts, client.UnsafeDisableDeepCopy)...) // Only names are read.
}

// ofCluster maps a Cluster to its control plane.
func ofCluster(_ context.Context, o client.Object) []reconcile.Request {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok || cluster.Spec.ControlPlaneRef.Kind != "OpenshiftAssistedControlPlane" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}}}
}

// ofClusterObject maps an object of a Cluster to the Cluster's control plane. It does not ask the Cluster, which may be gone while the
// control plane is being deleted.
func (r *Reconciler) ofClusterObject(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := o.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" {
		return nil
	}
	return r.list(ctx, index.OfCluster(types.NamespacedName{Namespace: o.GetNamespace(), Name: cluster})...)
}

// ofKubeconfig maps <cluster>-kubeconfig and the copy of the installer's credential to the Cluster's control plane, which makes them anew
// when somebody deletes them.
func (r *Reconciler) ofKubeconfig(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != secret.Name(o.GetLabels()[clusterv1.ClusterNameLabel], secret.Kubeconfig) &&
		!strings.HasSuffix(o.GetName(), view.InstallerCredentialsSuffix) {
		return nil
	}
	return r.ofClusterObject(ctx, o)
}

// ofSameName maps ClusterDeployment and AgentClusterInstall, which have the control plane's name. One that belongs to somebody else is
// mapped too: it may be in the way, and its deletion is good news.
func ofSameName(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// ofImageSet maps a ClusterImageSet to the control plane that it is made for, by its name, and to those whose spec names it: an upgrade may
// wait for its image.
func (r *Reconciler) ofImageSet(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, index.UsingImageSet(o.GetName()))
}

// ofClusterDeploymentSecret maps the Secret of an installer kubeconfig by its owner, the ClusterDeployment.
func ofClusterDeploymentSecret(_ context.Context, o client.Object) []reconcile.Request {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "ClusterDeployment" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}}
		}
	}
	return nil
}
