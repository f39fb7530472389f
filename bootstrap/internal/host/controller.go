// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/predicates"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Only what is read past the cache is got.
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=list;watch
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=list;watch;patch
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=list;watch

// The kinds that the pass of a host writes.
const (
	kindAgent = "Agent"
	kindHost  = "BareMetalHost"
)

// Reconciler takes the host of a config into its cluster. It has no queue of its own: the controller of configs calls it in each pass, and
// writes what it sets on the config together with what it sets itself, so that one config has one writer.
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
	// Now is the clock.
	Now func() time.Time

	// controller defers a pass until the cache has seen what the pass before wrote.
	controller    capicontrollerutil.Controller
	infraMachines external.ObjectTracker
	// binds are those that have failed.
	binds retries
	// changes lets real changes through.
	changes predicate.Predicate
}

// Watch makes the controller of configs look at a config again when what its host's pass decides on changes. The resync of configs does for
// their hosts too: each of them would be looked at once more for every object that concerns it. Of a config that has vanished it is the
// Machine that is looked at again.
func (r *Reconciler) Watch(ctx context.Context, mgr ctrl.Manager, c capicontrollerutil.Controller) error {
	log := ctrl.LoggerFrom(ctx)
	cache, mapper := mgr.GetCache(), mapping.Mapper{Client: mgr.GetClient(), Gate: r.Gate}
	r.controller, r.changes = c, predicates.ResourceIsChanged(mgr.GetScheme(), log)
	r.infraMachines = external.ObjectTracker{Controller: c, Cache: cache, Scheme: mgr.GetScheme(), PredicateLogger: &log}
	watch := func(crd string, kind client.Object, to handler.MapFunc, more ...predicate.Predicate) error {
		only := append([]predicate.Predicate{r.changes}, more...)
		return r.Gate.Watch(c, crd, source.Kind(cache, kind, handler.EnqueueRequestsFromMapFunc(to), only...))
	}
	return errors.Join(
		watch(assisted.CRDAgents, &assisted.Agent{}, mapper.FromAgent),
		watch(assisted.CRDAgents, &assisted.Agent{}, mapper.FromStranger, mapping.Strangers),
		watch(assisted.CRDAgentClusterInstalls, &hiveext.AgentClusterInstall{}, mapper.FromClusterLabel, mapping.Installs),
		watch(metal3.CRDBareMetalHosts, &bmov1alpha1.BareMetalHost{}, mapper.FromHost),
		watch(metal3.CRDBareMetalHosts, &bmov1alpha1.BareMetalHost{}, mapper.FromAnyHost, mapping.Identities),
		watch(metal3.CRDBareMetalHosts, &bmov1alpha1.BareMetalHost{}, mapper.FromSerial, mapping.Serials),
	)
}

// Came is what came of the pass of a host.
type Came struct {
	// LookAgain is when the pass is to be repeated, because no event tells that a bound host has taken longer than its checks may take, that
	// a host has not registered, or assisted-service not examined it, in time, or that a bind that has failed is due again; 0 is when
	// something changes.
	LookAgain time.Duration
	// Hooked is true when the Machine has its pre-terminate hook.
	Hooked bool
}

// Pass brings the host of a config nearer to being a Node, or lets its Agent go with its Machine. What it has to record and to say it sets
// on the config, for the caller to write; save writes the records at once.
func (r *Reconciler) Pass(
	ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig, owners mapping.Owners, save func(context.Context) kube.Outcome,
) (Came, error) {
	if owners.Machine == nil || (owners.Cluster == nil && owners.Machine.DeletionTimestamp.IsZero()) {
		// Without a Machine there is no host; Agents of a Machine that is gone are the agent controller's. Without a Cluster no host
		// joins, but the deletion of a Machine goes on (CONTRACT BOOT-31, BOOT-36).
		return Came{}, nil
	}
	s := &scope{config: config, machine: owners.Machine, cluster: owners.Cluster, now: r.Now(), save: save}
	came, err := r.pass(ctx, s)
	setStatus(config, came)
	passed := Came{Hooked: !s.lacksHook() || came.outcomes.hook.Done()}
	if err == nil && came.decision != nil {
		passed.LookAgain = came.decision.lookAgain
	}
	return passed, err
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
	s.held = r.binds.left(s.machine.UID, s.now)
	d := decide(s)
	o := r.apply(ctx, s, d)
	return result{decision: &d, outcomes: o}, o.err()
}

// Release lets a Machine go whose config vanished before it, so that the hook never holds it for ever (DESIGN D12).
func (r *Reconciler) Release(ctx context.Context, config types.NamespacedName) error {
	machines, err := index.Finder{Reader: r.Client, Namespace: config.Namespace}.Machines(ctx, index.MachineConfig, config.Name)
	if err != nil {
		return err
	}
	for _, machine := range machines {
		if machine.DeletionTimestamp.IsZero() || machine.Annotations[bootstrapv1.AgentDeletionHook] == "" {
			continue
		}
		if r.WatchFilter != "" && !labels.HasWatchLabel(machine, r.WatchFilter) {
			continue
		}
		cluster, err := mapping.Cluster(ctx, r.Client, config.Namespace, machine.Spec.ClusterName)
		if err != nil {
			return err
		}
		if cluster != nil && annotations.IsPaused(cluster, machine) {
			continue // Its Agent may be one that a move leaves behind (CONTRACT CTL-43).
		}
		vanished := &bootstrapv1.OpenshiftAssistedConfig{}
		vanished.Namespace, vanished.Name = config.Namespace, config.Name
		if _, err := r.pass(ctx, &scope{config: vanished, machine: machine.DeepCopy()}); err != nil {
			return err
		}
	}
	return nil
}

// patchAgent writes to an Agent, unless it has changed since it was read.
func (r *Reconciler) patchAgent(ctx context.Context, s *scope, a *assisted.Agent, change func(*assisted.Agent)) error {
	written, err := kube.Rewrite(ctx, r.Client, a, change)
	if err == nil {
		r.wrote(s, assisted.GroupVersion, kindAgent, written)
	}
	return err
}

// wrote defers the next pass of the config until the cache has seen an object that was written: it would decide on what was there before,
// and the API server would refuse what it wrote.
func (r *Reconciler) wrote(s *scope, of schema.GroupVersion, kind string, written client.Object) {
	r.controller.DeferNextReconcileUntilCacheUpToDate(s.config, capicontrollerutil.StructuredObject(of, kind), written.GetResourceVersion())
}

func (r *Reconciler) event(s *scope, eventType, reason, note string, args ...any) {
	r.Recorder.Eventf(s.config, nil, eventType, reason, reason, note, args...)
}

func (r *Reconciler) normal(s *scope, reason, note string, args ...any) {
	r.event(s, corev1.EventTypeNormal, reason, note, args...)
}
