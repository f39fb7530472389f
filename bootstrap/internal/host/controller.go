// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/predicates"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Only what is read past the cache is got.
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=list;watch
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=list;watch;patch
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=list;watch

// Reconciler reconciles the host of one OpenshiftAssistedConfig.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// APIReader reads from the API server, where a stale cache would do harm.
	APIReader client.Reader
	// Gate knows which CRDs are served.
	Gate *manager.Gate
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the objects that are reconciled (CONTRACT BOOT-42).
	WatchFilter string

	infraMachines external.ObjectTracker
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "host")
	mapper := mapping.Mapper{Client: mgr.GetClient()}
	c, err := capicontrollerutil.NewControllerManagedBy(mgr, log).
		Named("host").
		For(&bootstrapv1.OpenshiftAssistedConfig{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(mapper.FromMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(mapper.FromCluster),
			predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log)).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilter)).
		WithOptions(options).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("set up the host controller: %w", err)
	}
	r.infraMachines = external.ObjectTracker{Controller: c, Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), PredicateLogger: &log}
	cache := mgr.GetCache()
	return errors.Join(
		r.Gate.Resync(c, mapper.All),
		r.Gate.Watch(
			c, assisted.CRDAgents, source.Kind(cache, client.Object(&assisted.Agent{}), handler.EnqueueRequestsFromMapFunc(mapper.FromAgent)),
		),
		r.Gate.Watch(
			c, assisted.CRDAgentClusterInstalls,
			source.Kind(cache, client.Object(&hiveext.AgentClusterInstall{}), handler.EnqueueRequestsFromMapFunc(mapper.FromClusterLabel)),
		),
		r.Gate.Watch(
			c, metal3.CRDBareMetalHosts,
			source.Kind(cache, client.Object(&bmov1alpha1.BareMetalHost{}), handler.EnqueueRequestsFromMapFunc(mapper.FromAnyHost)),
		),
	)
}

// Reconcile brings the host of one OpenshiftAssistedConfig nearer to being a Node, or lets its Agent go with its Machine.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, reterr error) {
	config, err := kube.GetOrNil[bootstrapv1.OpenshiftAssistedConfig](ctx, r.Client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if config == nil {
		return ctrl.Result{}, r.releaseMachine(ctx, req)
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(config, r.WatchFilter) {
		return ctrl.Result{}, nil // Events of InfraEnvs, Agents and hosts come without the filter's label.
	}
	owners, err := mapping.OwnersOf(ctx, r.Client, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owners.Machine == nil || (owners.Cluster == nil && owners.Machine.DeletionTimestamp.IsZero()) {
		// Without a Machine there is no host; Agents of a Machine that is gone are the agent controller's. Without a Cluster no host
		// joins, but the deletion of a Machine goes on (CONTRACT BOOT-31, BOOT-36).
		return ctrl.Result{}, nil
	}
	if owners.Cluster != nil && annotations.IsPaused(owners.Cluster, config) {
		return ctrl.Result{}, nil // The config controller says so in the condition Paused.
	}
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("Machine", klog.KObj(owners.Machine), "Cluster", klog.KObj(owners.Cluster)))

	helper, err := patch.NewHelper(config, r.Client)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("prepare the patch of %s: %w", req, err)
	}
	s := &scope{config: config, machine: owners.Machine, cluster: owners.Cluster, now: time.Now()}
	var came result
	defer func() {
		setStatus(config, came)
		ctx, cancel := manager.ForStatus(ctx)
		defer cancel()
		reterr = kerrors.NewAggregate([]error{reterr, patchConfig(ctx, helper, config)})
	}()

	if came, err = r.pass(ctx, s); err != nil || came.decision == nil {
		return ctrl.Result{}, err
	}
	// No event tells that a bound host has taken longer than its checks may take, nor that a host has not registered in time.
	return ctrl.Result{RequeueAfter: came.decision.lookAgain}, nil
}

// pass observes, decides and applies.
func (r *Reconciler) pass(ctx context.Context, s *scope) (result, error) {
	departs := !s.machine.DeletionTimestamp.IsZero()
	if err := r.observe(ctx, s); err != nil {
		if departs {
			return result{}, err // No later pass of a departure would take the message back out of the condition AgentInstalled.
		}
		return result{unread: err}, err
	}
	if departs {
		d := decideDeparture(s)
		o := r.applyDeparture(ctx, s, d)
		return result{departure: &d, outcomes: o}, o.err()
	}
	d := decide(s)
	o := r.apply(ctx, s, d)
	return result{decision: &d, outcomes: o}, o.err()
}

// releaseMachine lets a Machine go whose config vanished before it, so that the hook never holds it for ever (DESIGN D12).
func (r *Reconciler) releaseMachine(ctx context.Context, req ctrl.Request) error {
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(req.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if machine.DeletionTimestamp.IsZero() || machine.Spec.Bootstrap.ConfigRef.Name != req.Name ||
			machine.Annotations[bootstrapv1.AgentDeletionHook] == "" {
			continue
		}
		if r.WatchFilter != "" && !labels.HasWatchLabel(machine, r.WatchFilter) {
			continue
		}
		cluster, err := mapping.Cluster(ctx, r.Client, req.Namespace, machine.Spec.ClusterName)
		if err != nil {
			return err
		}
		if cluster != nil && annotations.IsPaused(cluster, machine) {
			continue // Its Agent may be one that a move leaves behind (CONTRACT CTL-43).
		}
		vanished := &bootstrapv1.OpenshiftAssistedConfig{}
		vanished.Namespace, vanished.Name = req.Namespace, req.Name
		if _, err := r.pass(ctx, &scope{config: vanished, machine: machine}); err != nil {
			return err
		}
	}
	return nil
}

// patchConfig writes the conditions that this controller owns. The config may be gone when its Machine is being deleted.
func patchConfig(ctx context.Context, helper *patch.Helper, config *bootstrapv1.OpenshiftAssistedConfig) error {
	err := helper.Patch(ctx, config, patch.WithOwnedConditions{Conditions: ownedConditions})
	if err = kerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
		return fmt.Errorf("patch OpenshiftAssistedConfig %s: %w", klog.KObj(config), err)
	}
	return nil
}

func (r *Reconciler) event(s *scope, eventType, reason, note string, args ...any) {
	r.Recorder.Eventf(s.config, nil, eventType, reason, reason, note, args...)
}

func (r *Reconciler) normal(s *scope, reason, note string, args ...any) {
	r.event(s, corev1.EventTypeNormal, reason, note, args...)
}
