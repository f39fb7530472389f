// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/cluster-api/util/predicates"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Kinds that are read from the cache are listed and watched, and got by nobody. Informers list on API servers that do not stream lists.
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=list;watch;patch
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=list;watch
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=infraenvs;nmstateconfigs,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=list;watch
// The release that a cluster runs, and the OS images that assisted-service has, are read when a new host needs an image; never cached.
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=get
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agentserviceconfigs,resourceNames=agent,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// Deleting Secrets is allowed because owners are set on existing ones, which the API server refuses to who cannot delete the object.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// IgnitionSource fetches discovery ignitions. Its errors name neither the URL, which holds a token, nor the content.
type IgnitionSource interface {
	// Fetch returns what the URL serves, byte for byte, after a check that it is ignition. A *discovery.Error says what is wrong in words
	// that do not change from one attempt to the next.
	Fetch(ctx context.Context, url string) ([]byte, error)
}

// Reconciler reconciles OpenshiftAssistedConfigs.
type Reconciler struct {
	// Client is the manager's cached client; Secrets are read from the API server.
	Client client.Client
	// APIReader reads the release of the cluster and the OS images of assisted-service.
	APIReader client.Reader
	// Ignitions fetches discovery ignitions for hosts that boot a disk image.
	Ignitions IgnitionSource
	// Gate knows which CRDs are served.
	Gate *manager.Gate
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the objects that are reconciled (CONTRACT BOOT-42).
	WatchFilter string

	infraMachines external.ObjectTracker
	secrets       secrets
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "openshiftassistedconfig")
	mapper := mapping.Mapper{Client: mgr.GetClient()}
	c, err := capicontrollerutil.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.OpenshiftAssistedConfig{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(mapper.FromMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(mapper.FromCluster),
			predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log)).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilter)).
		WithOptions(options).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("set up the config controller: %w", err)
	}
	r.secrets = secrets{reader: mgr.GetClient(), recent: utilcache.NewExpiring()}
	r.infraMachines = external.ObjectTracker{Controller: c, Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), PredicateLogger: &log}
	cache := mgr.GetCache()
	// The resync of configs is enough: without this, each of them is looked at once more for every object that concerns it.
	changes := predicates.ResourceIsChanged(mgr.GetScheme(), log)
	watch := func(crd string, kind client.Object, to handler.MapFunc, more ...predicate.Predicate) error {
		only := append([]predicate.Predicate{changes}, more...)
		return r.Gate.Watch(c, crd, source.Kind(cache, kind, handler.EnqueueRequestsFromMapFunc(to), only...))
	}
	return errors.Join(
		r.Gate.Resync(c, mapper.All),
		watch(assisted.CRDInfraEnvs, &assisted.InfraEnv{}, mapper.FromInfraEnv),
		watch(assisted.CRDNMStateConfigs, &assisted.NMStateConfig{}, mapper.FromNMStateConfig),
		watch(assisted.CRDAgents, &assisted.Agent{}, mapper.FromClaimedAgent, deletions),
		watch(assisted.CRDClusterDeployments, &hivev1.ClusterDeployment{}, mapper.FromClusterLabel, pullSecrets),
		watch(metal3.CRDBareMetalHosts, &bmov1alpha1.BareMetalHost{}, mapper.FromHostOrCandidate),
	)
}

// pullSecrets lets through what changes the pull secret of a cluster: hive and assisted-service write the status of ClusterDeployments
// often.
var pullSecrets = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*hivev1.ClusterDeployment)
	after, same := e.ObjectNew.(*hivev1.ClusterDeployment)
	return !ok || !same || before.Labels[clusterv1.ClusterNameLabel] != after.Labels[clusterv1.ClusterNameLabel] ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Spec.PullSecretRef, after.Spec.PullSecretRef)
}}

// deletions lets only deletions through: the config needs to know when an Agent is gone, and nothing of its frequent status changes.
var deletions = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// Reconcile brings one OpenshiftAssistedConfig nearer to published boot media, or to its deletion.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, reterr error) {
	config, err := kube.GetOrNil[bootstrapv1.OpenshiftAssistedConfig](ctx, r.Client, req.NamespacedName)
	if err != nil || config == nil {
		return ctrl.Result{}, err
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(config, r.WatchFilter) {
		return ctrl.Result{}, nil // Events of InfraEnvs, Agents and hosts come without the filter's label.
	}
	owners, err := mapping.OwnersOf(ctx, r.Client, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	if config.DeletionTimestamp.IsZero() && (owners.Machine == nil || owners.Cluster == nil) {
		// Nothing is done before core has set the owner (CONTRACT BOOT-30, BOOT-31); its write triggers the next pass.
		return ctrl.Result{}, r.refuseMachinePool(ctx, config, owners.Cluster)
	}
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("Machine", klog.KObj(owners.Machine), "Cluster", klog.KObj(owners.Cluster)))

	if held, err := r.held(ctx, owners.Cluster, config); err != nil || held {
		return ctrl.Result{}, err
	}
	helper, err := patch.NewHelper(config, r.Client)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("prepare the patch of %s: %w", req, err)
	}
	s := &scope{config: config, now: time.Now(), machine: owners.Machine, cluster: owners.Cluster}
	var came result
	defer func() {
		setStatus(s, came)
		ctx, cancel := manager.ForStatus(ctx)
		defer cancel()
		reterr = kerrors.NewAggregate([]error{reterr, patchConfig(ctx, helper, config, came)})
	}()

	if came, err = r.pass(ctx, s); err != nil || came.decision == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: came.decision.retryAfter}, nil
}

// held reports whether the pass ends before it begins: the config is paused, or it has just got its condition Paused or its finalizer,
// which triggers another pass.
func (r *Reconciler) held(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.OpenshiftAssistedConfig) (bool, error) {
	if isPaused, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, config); err != nil || isPaused || requeue {
		return true, err
	}
	return finalizers.EnsureFinalizer(ctx, r.Client, config, bootstrapv1.ConfigFinalizer)
}

// refuseMachinePool says on a config that a MachinePool owns that nothing will be made for it.
func (r *Reconciler) refuseMachinePool(ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig, cluster *clusterv1.Cluster) error {
	pool := mapping.MachinePool(config)
	if pool == "" || cluster == nil || annotations.IsPaused(cluster, config) {
		return nil
	}
	helper, err := patch.NewHelper(config, r.Client)
	if err != nil {
		return fmt.Errorf("prepare the patch of OpenshiftAssistedConfig %s: %w", klog.KObj(config), err)
	}
	refusal := result{decision: &decision{dataSecret: fact.Waiting(bootstrapv1.MachinePoolNotSupportedReason,
		"MachinePool %s owns this config, and hosts are let in one by one, each for its Machine: use a MachineDeployment", pool)}}
	setStatus(&scope{config: config}, refusal)
	return patchConfig(ctx, helper, config, refusal)
}

// pass observes, decides and applies.
func (r *Reconciler) pass(ctx context.Context, s *scope) (result, error) {
	if err := r.observe(ctx, s); err != nil {
		return result{unread: err}, err
	}
	if !s.config.DeletionTimestamp.IsZero() {
		d := decideDeletion(s)
		o := r.applyDeletion(ctx, s, d)
		return result{deletion: &d, outcomes: o}, o.err()
	}
	d := decide(s)
	o := r.apply(ctx, s, d)
	return result{decision: &d, outcomes: o}, o.err()
}

// patchConfig writes metadata and status: the generation counts as observed only when something was decided about it. A config whose
// finalizer was just removed may be gone already.
func patchConfig(ctx context.Context, helper *patch.Helper, config *bootstrapv1.OpenshiftAssistedConfig, came result) error {
	options := []patch.Option{patch.WithOwnedConditions{Conditions: ownedConditions}}
	if came.decided() {
		options = append(options, patch.WithStatusObservedGeneration{})
	}
	err := helper.Patch(ctx, config, options...)
	if !config.DeletionTimestamp.IsZero() {
		err = kerrors.FilterOut(err, apierrors.IsNotFound)
	}
	if err != nil {
		return fmt.Errorf("patch OpenshiftAssistedConfig %s: %w", klog.KObj(config), err)
	}
	return nil
}

func (r *Reconciler) event(config *bootstrapv1.OpenshiftAssistedConfig, reason, note string, args ...any) {
	r.Recorder.Eventf(config, nil, corev1.EventTypeNormal, reason, reason, note, args...)
}

// eventAbout records an event about one of several objects. Without that, the recorder takes their events for one that is repeated, and
// shows the note of the first.
func (r *Reconciler) eventAbout(
	config *bootstrapv1.OpenshiftAssistedConfig, related client.Object, reason, note string, args ...any,
) {
	r.Recorder.Eventf(config, related, corev1.EventTypeNormal, reason, reason, note, args...)
}
