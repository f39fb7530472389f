// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/predicates"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/host"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/tracing"
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

// Ignitions fetches discovery ignitions. Its errors name neither the URL, which holds a token, nor the content.
type Ignitions interface {
	// Lookup returns what the URL serves, once it was fetched, and discovery.ErrPending before. A *discovery.Error says what is wrong in words
	// that do not change from one attempt to the next.
	Lookup(ctx context.Context, config types.NamespacedName, url string) ([]byte, error)
	// Forget drops what was fetched for a config that is gone.
	Forget(config types.NamespacedName)
	// Events tell of configs for which there is news.
	Events() <-chan event.GenericEvent
}

// Hosts takes the host of a config into its cluster (package host).
type Hosts interface {
	// Watch makes the controller look at a config again when what Pass decides on changes.
	Watch(ctx context.Context, mgr ctrl.Manager, c capicontrollerutil.Controller) error
	// Pass brings the host of a config nearer to being a Node, or lets its Agent go with its Machine. It sets its records and conditions on
	// the config, and leaves it to the caller to write them; save writes records that have to precede what the pass does.
	Pass(
		ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig, owners mapping.Owners, save func(context.Context) kube.Outcome,
	) (host.Came, error)
	// Release lets a Machine go whose config has vanished.
	Release(ctx context.Context, config types.NamespacedName) error
}

// Reconciler reconciles OpenshiftAssistedConfigs and their hosts. Nobody else writes their status, and the annotations and
// the finalizer of this provider.
type Reconciler struct {
	// Client is the manager's cached client; Secrets are read from the API server.
	Client client.Client
	// APIReader reads the release of the cluster and the OS images of assisted-service.
	APIReader client.Reader
	// Ignitions fetches discovery ignitions for hosts that boot a disk image.
	Ignitions Ignitions
	// Gate knows which CRDs are served.
	Gate *manager.Gate
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the objects that are reconciled (CONTRACT BOOT-42).
	WatchFilter string
	// Hosts takes the hosts into their clusters.
	Hosts Hosts
	// Now is the clock.
	Now func() time.Time

	// controller defers a pass until the cache has seen what the pass before wrote.
	controller capicontrollerutil.Controller
	// leading tells since when this manager acts.
	leading manager.Leadership
	secrets secrets
	// creations are the InfraEnvs that passes create now.
	creations singleflight.Group
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "openshiftassistedconfig")
	mapper := mapping.Mapper{Client: mgr.GetClient(), Gate: r.Gate}
	b := capicontrollerutil.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.OpenshiftAssistedConfig{}).
		Watches(&clusterv1.Machine{}, r.days().Machines(handler.EnqueueRequestsFromMapFunc(mapper.FromMachine))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(mapper.FromCluster),
			predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log)).
		WatchesRawSource(source.Channel(r.Ignitions.Events(), &handler.EnqueueRequestForObject{})).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilter))
	c, err := manager.Build(ctx, b, options, r)
	if err != nil {
		return fmt.Errorf("set up the config controller: %w", err)
	}
	r.secrets = newSecrets(mgr.GetClient(), clock.RealClock{})
	return r.watch(ctrl.LoggerInto(ctx, log), mgr, c)
}

// watch makes the controller look at a config again when something changes that is not there from the beginning.
func (r *Reconciler) watch(ctx context.Context, mgr ctrl.Manager, c capicontrollerutil.Controller) error {
	r.controller = c
	cache, mapper := mgr.GetCache(), mapping.Mapper{Client: mgr.GetClient(), Gate: r.Gate}
	// The resync of configs is enough: without this, each of them is looked at once more for every object that concerns it.
	changes := predicates.ResourceIsChanged(mgr.GetScheme(), ctrl.LoggerFrom(ctx))
	watch := func(crd string, kind client.Object, to handler.MapFunc, more ...predicate.Predicate) error {
		only := append([]predicate.Predicate{changes}, more...)
		return r.Gate.Watch(c, crd, source.Kind(cache, kind, handler.EnqueueRequestsFromMapFunc(to), only...))
	}
	return errors.Join(
		r.Gate.Resync(c, mapper.All),
		watch(assisted.CRDInfraEnvs, &assisted.InfraEnv{}, mapper.FromInfraEnv, mapping.InfraEnvs),
		r.Gate.Watch(c, assisted.CRDInfraEnvs, source.Kind(cache, client.Object(&assisted.InfraEnv{}), mapper.Users(), changes)),
		watch(assisted.CRDNMStateConfigs, &assisted.NMStateConfig{}, mapper.FromNMStateConfig),
		watch(assisted.CRDClusterDeployments, &hivev1.ClusterDeployment{}, mapper.FromClusterLabel, pullSecrets),
		watch(metal3.CRDBareMetalHosts, &bmov1alpha1.BareMetalHost{}, mapper.FromHostNetwork, mapping.HostNetworks),
		watch(metal3.CRDBareMetalHosts, &bmov1alpha1.BareMetalHost{}, mapper.FromChosenHost, mapping.ChosenHosts),
		// Metal3Machines, BareMetalHosts and Agents, which concern the boot media too.
		r.Hosts.Watch(ctx, mgr, c),
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

// Reconcile brings one OpenshiftAssistedConfig nearer to published boot media, and its host nearer to being a Node; or both to their
// deletion.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config, err := kube.GetOrNil[bootstrapv1.OpenshiftAssistedConfig](ctx, r.Client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if config == nil {
		r.Ignitions.Forget(req.NamespacedName)
		return ctrl.Result{}, r.Hosts.Release(ctx, req.NamespacedName)
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(config, r.WatchFilter) {
		return ctrl.Result{}, nil // Events of InfraEnvs, Agents and hosts come without the filter's label.
	}
	tracing.Link(ctx, config)
	owners, err := mapping.OwnersOf(ctx, r.Client, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	if config.DeletionTimestamp.IsZero() && (owners.Machine == nil || owners.Cluster == nil && owners.Machine.DeletionTimestamp.IsZero()) {
		// Nothing is done before core has set the owner (CONTRACT BOOT-30, BOOT-31); its write triggers the next pass.
		return ctrl.Result{}, r.refuseMachinePool(ctx, config, owners.Cluster)
	}
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("Machine", klog.KObj(owners.Machine), "Cluster", klog.KObj(owners.Cluster)))
	read := config.DeepCopy()
	s := &scope{
		config:  config,
		first:   read,
		read:    read,
		now:     r.Now(),
		machine: owners.Machine,
		cluster: owners.Cluster,
		hooked:  hooked(owners.Machine),
	}
	if isPaused, err := kube.HoldPaused(ctx, r.Client, owners.Cluster, config); err != nil || isPaused {
		return ctrl.Result{}, err
	}
	lookAgain, came, err := r.pass(ctx, s)
	if r.leading.StillFills(err, s.now) {
		ctrl.LoggerFrom(ctx).V(2).Info("Waiting for the cache to be filled", "error", err.Error())
		s.read.Status.DeepCopyInto(&config.Status)
		lookAgain, came, err = manager.FillingRetryInterval, result{}, nil
	}
	err = kerrors.NewAggregate([]error{err, r.patchConfig(ctx, s, came)})
	if err == nil || lookAgain == 0 {
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	// The queue waits longer after each error, up to 17 minutes, and would let the time pass by at which the host is to be looked at.
	tracing.Fail(ctx, err)
	ctrl.LoggerFrom(ctx).Error(err, "The pass failed and is repeated", "after", min(lookAgain, retryAfterError))
	return ctrl.Result{RequeueAfter: min(lookAgain, retryAfterError)}, nil
}

// hooked reports whether a Machine has its pre-terminate hook, as the control plane provider makes those of control planes.
func hooked(machine *clusterv1.Machine) bool {
	return machine != nil && machine.Annotations[bootstrapv1.AgentDeletionHook] != ""
}

// retryAfterError is when a pass that failed is repeated at the latest while the host is waited for.
const retryAfterError = 30 * time.Second

// pass lets the host of a config go on, and then its boot media, and sets on the config what came of both. One does not stop the other: a
// server of ignition that does not answer is no reason why a host that has booted should not join. It returns when to look again.
func (r *Reconciler) pass(ctx context.Context, s *scope) (lookAgain time.Duration, came result, err error) {
	living, first := s.config.DeletionTimestamp.IsZero(), s.fresh() && s.machine.DeletionTimestamp.IsZero()
	var hostErr error
	if !first {
		lookAgain, hostErr = r.host(ctx, s)
	}
	if !living || s.cluster != nil {
		came, err = r.media(ctx, s)
	}
	if first && !s.fresh() { // The finalizer of a config that is taken up comes before anything else.
		lookAgain, hostErr = r.host(ctx, s)
	}
	setStatus(s, came)
	if saidLater(s, came) {
		lookAgain = sooner(lookAgain, firstStatusWithin)
	}
	return sooner(lookAgain, came.lookAgain()), came, kerrors.NewAggregate([]error{hostErr, err})
}

// host lets the host go on.
func (r *Reconciler) host(ctx context.Context, s *scope) (lookAgain time.Duration, err error) {
	save := func(ctx context.Context) kube.Outcome { return r.saveRecords(ctx, s) }
	passed, err := r.Hosts.Pass(ctx, s.config, mapping.Owners{Machine: s.machine, Cluster: s.cluster}, save)
	s.hooked = passed.Hooked
	return passed.LookAgain, err
}

// sooner is the shorter one of two times to wait, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// refuseMachinePool says on a config that a MachinePool owns that nothing will be made for it.
func (r *Reconciler) refuseMachinePool(ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig, cluster *clusterv1.Cluster) error {
	pool := mapping.MachinePool(config)
	if pool == "" || cluster == nil || annotations.IsPaused(cluster, config) {
		return nil
	}
	read := config.DeepCopy()
	s := &scope{config: config, first: read, read: read}
	refusal := result{decision: &decision{dataSecret: fact.Waiting(bootstrapv1.MachinePoolNotSupportedReason,
		"MachinePool %s owns this config, and hosts are let in one by one, each for its Machine: use a MachineDeployment", pool)}}
	setStatus(s, refusal)
	return r.patchConfig(ctx, s, refusal)
}

// media observes, decides and applies what the boot media of a config need.
func (r *Reconciler) media(ctx context.Context, s *scope) (result, error) {
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

// patchConfig writes what a pass set on a config: its records and its finalizer, and then its status. The generation counts as observed
// only when something was decided about it. A config whose finalizer was just removed may be gone already.
func (r *Reconciler) patchConfig(ctx context.Context, s *scope, came result) error {
	ctx, cancel := manager.ForStatus(ctx)
	defer cancel()
	if came.decided() {
		s.config.Status.ObservedGeneration = s.config.Generation
	}
	leaves := len(s.config.Finalizers) < len(s.read.Finalizers)
	outcome := r.saveRecords(ctx, s)
	stored := s.read
	if !outcome.Stops() && !leaves && !saidLater(s, came) && !equality.Semantic.DeepEqual(s.read.Status, s.config.Status) {
		status := s.read.DeepCopy()
		status.Status = s.config.Status
		alone, err := kube.PatchStatus(ctx, r.Client, s.read, status, ownedConditions)
		if outcome = kube.OutcomeOf(err); alone {
			stored = status
		}
		r.wrote(status)
		r.secrets.keep(s, status.ResourceVersion)
	}
	r.count(ctx, s, stored)
	err := outcome.Err()
	if !s.config.DeletionTimestamp.IsZero() {
		err = client.IgnoreNotFound(err)
	}
	if err != nil {
		return fmt.Errorf("patch OpenshiftAssistedConfig %s: %w", klog.KObj(s.config), err)
	}
	return nil
}

// saveRecords writes the records that the pass has set on the config. If it cannot, nothing is recorded, and the status goes out without
// them.
func (r *Reconciler) saveRecords(ctx context.Context, s *scope) kube.Outcome {
	outcome := kube.OutcomeOf(r.patchRecords(ctx, s))
	if outcome.Stops() {
		s.config.Annotations, s.config.Finalizers = maps.Clone(s.read.Annotations), slices.Clone(s.read.Finalizers)
	}
	return outcome
}

// patchRecords writes the annotations and finalizers that the pass has set on the config, unless the config has changed since it was read:
// an old pass must not record another InfraEnv. What the API server made of them counts as read.
func (r *Reconciler) patchRecords(ctx context.Context, s *scope) error {
	if slices.Equal(s.read.Finalizers, s.config.Finalizers) && maps.Equal(s.read.Annotations, s.config.Annotations) {
		return nil
	}
	if s.config.DeletionTimestamp.IsZero() {
		tracing.Mark(ctx, s.config) // With what is written anyway.
	}
	records := s.read.DeepCopy()
	records.Annotations, records.Finalizers = maps.Clone(s.config.Annotations), slices.Clone(s.config.Finalizers)
	if err := r.Client.Patch(ctx, records, client.MergeFromWithOptions(s.read, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.wrote(records)
	s.read = records
	s.config.Annotations, s.config.Finalizers = maps.Clone(records.Annotations), slices.Clone(records.Finalizers)
	return nil
}

// wrote defers the next pass until the cache has seen a config that was written: it would decide on what was recorded before.
func (r *Reconciler) wrote(config *bootstrapv1.OpenshiftAssistedConfig) {
	kind := capicontrollerutil.StructuredObject(bootstrapv1.GroupVersion, "OpenshiftAssistedConfig")
	r.controller.DeferNextReconcileUntilCacheUpToDate(config, kind, config.ResourceVersion)
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
