// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/predicates"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/metrics"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=list;watch;patch;delete

// Reconciler looks after Agents of InfraEnvs made by this provider that belong to no Machine.
type Reconciler struct {
	// Client is the manager's cached client.
	Client client.Client
	// APIReader confirms that a Machine is gone before its Agent is deleted.
	APIReader client.Reader
	// Gate knows which CRDs are served.
	Gate *manager.Gate
	// Recorder records events.
	Recorder events.EventRecorder
	// WatchFilter restricts the Agents that are looked after to those of InfraEnvs that a config with the filter's label uses (CONTRACT
	// BOOT-42).
	WatchFilter string
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "agent")
	b := capicontrollerutil.NewControllerManagedBy(mgr, log).
		Named("agent").
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.all), predicates.ClusterPausedTransitions(mgr.GetScheme(), log))
	c, err := manager.Build(ctx, b, options, r)
	if err != nil {
		return fmt.Errorf("set up the agent controller: %w", err)
	}
	return r.Watch(ctrl.LoggerInto(ctx, log), mgr, c)
}

// Watch makes the controller look at an Agent again when the Agent changes, and what is said and done of it depends on.
func (r *Reconciler) Watch(ctx context.Context, mgr ctrl.Manager, c manager.Watcher) error {
	cache, changes := mgr.GetCache(), predicates.ResourceIsChanged(mgr.GetScheme(), ctrl.LoggerFrom(ctx))
	return errors.Join(
		c.Watch(source.Kind(cache, client.Object(&clusterv1.Machine{}), handler.EnqueueRequestsFromMapFunc(r.claimedFor), changes)),
		r.Gate.Watch(c, assisted.CRDAgents, source.Kind(
			cache, client.Object(&assisted.Agent{}), metrics.Agents(&handler.EnqueueRequestForObject{}),
		)),
		r.Gate.Watch(
			c, metal3.CRDBareMetalHosts,
			source.Kind(cache, client.Object(&bmov1alpha1.BareMetalHost{}), handler.EnqueueRequestsFromMapFunc(r.fromHost), changes),
		),
	)
}

// Reconcile deletes an Agent whose Machine is gone, and says of an unclaimed one why no host is recognised in it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if len(r.Gate.Missing(assisted.CRDInfraEnvs, assisted.CRDAgents)) > 0 {
		return ctrl.Result{}, nil
	}
	agent, err := kube.GetOrNil[assisted.Agent](ctx, r.Client, req.NamespacedName)
	if err != nil || agent == nil {
		return ctrl.Result{}, err
	}
	// The change that is in the way of a write triggers another pass.
	return ctrl.Result{}, kube.OutcomeOf(r.lookAfter(ctx, agent)).Err()
}

// lookAfter deletes an Agent that is claimed for a Machine that is gone, and notes on an unclaimed one why no host is recognised in it.
func (r *Reconciler) lookAfter(ctx context.Context, agent *assisted.Agent) error {
	infraEnv, err := r.infraEnvOf(ctx, agent)
	if err != nil {
		return err
	}
	if watched, err := r.watched(ctx, infraEnv); err != nil || !watched {
		return err
	}
	clusterName := infraEnv.Labels[bootstrapv1.InfraEnvClusterLabel]
	cluster, err := mapping.Cluster(ctx, r.Client, agent.Namespace, clusterName)
	if err != nil || (cluster != nil && annotations.IsPaused(cluster, agent)) {
		return err // Paused: while it is moved away its Machines vanish, and the hosts live on (CONTRACT CTL-43).
	}
	if name, uid, claimed := agent.ClaimedFor(); claimed {
		return r.deleteOrphan(ctx, agent, name, uid)
	}
	if clusterName == "" {
		return nil
	}
	return r.explain(ctx, agent)
}

// infraEnvOf returns the InfraEnv that the Agent registered with; an empty one when it is gone.
func (r *Reconciler) infraEnvOf(ctx context.Context, agent *assisted.Agent) (*assisted.InfraEnv, error) {
	infraEnv := &assisted.InfraEnv{}
	key := types.NamespacedName{Namespace: agent.Namespace, Name: agent.Labels[assisted.InfraEnvLabel]}
	_, err := kube.Get(ctx, r.Client, key, infraEnv, client.UnsafeDisableDeepCopy) // It may have thousands of users.
	return infraEnv, err
}

// watched reports whether Agents of an InfraEnv are this manager's: with a filter, if a config that uses the InfraEnv has the filter's
// label. Agents have no such label of their own, and the owners of an InfraEnv are the configs that use it.
func (r *Reconciler) watched(ctx context.Context, infraEnv *assisted.InfraEnv) (bool, error) {
	if r.WatchFilter == "" {
		return true, nil
	}
	for _, owner := range infraEnv.OwnerReferences {
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		key := types.NamespacedName{Namespace: infraEnv.Namespace, Name: owner.Name}
		if _, err := kube.Get(ctx, r.Client, key, config); err != nil {
			return false, err
		}
		if labels.HasWatchLabel(config, r.WatchFilter) {
			return true, nil
		}
	}
	return false, nil
}

// deleteOrphan deletes an Agent that is claimed for a Machine that does not exist. It is never reused for another one: its host may be
// running what was installed for the old one. The host itself is Metal3's, which powers it off when the Metal3Machine goes (DESIGN D19).
func (r *Reconciler) deleteOrphan(ctx context.Context, agent *assisted.Agent, machineName, machineUID string) error {
	machine := &clusterv1.Machine{}
	key := types.NamespacedName{Namespace: agent.Namespace, Name: machineName}
	for _, reader := range []client.Reader{r.Client, r.APIReader} {
		exists, err := kube.Get(ctx, reader, key, machine)
		if err != nil || exists && string(machine.UID) == machineUID {
			return err
		}
	}
	if err := Delete(ctx, r.Client, agent, "its Machine does not exist any more"); err != nil {
		return err
	}
	r.Recorder.Eventf(agent, nil, corev1.EventTypeNormal, bootstrapv1.EventAgentDeleted, bootstrapv1.EventAgentDeleted,
		"Deleted the Agent of Machine %s, which does not exist any more", machineName)
	return nil
}

// explain notes on an Agent that no host is recognised in it. It stays unbound and unapproved, and harms nobody (DESIGN D6).
func (r *Reconciler) explain(ctx context.Context, agent *assisted.Agent) error {
	if !agent.HasInventory() || !agent.DeletionTimestamp.IsZero() || len(r.Gate.Missing(metal3.CRDBareMetalHosts)) > 0 {
		return nil
	}
	text, err := r.explanation(ctx, agent)
	if err != nil {
		return err
	}
	return r.note(ctx, agent, text)
}

// explanation says why no host is recognised in an Agent; it is empty when one is, where nothing is known of hosts, and where the InfraEnv
// tells whose host it is.
func (r *Reconciler) explanation(ctx context.Context, agent *assisted.Agent) (string, error) {
	if told, err := r.toldByInfraEnv(ctx, agent); err != nil || told {
		return "", err
	}
	can, shared, err := r.in(agent.Namespace).HostsOf(ctx, agent)
	if err != nil {
		return "", err
	}
	hosts := make([]bmov1alpha1.BareMetalHost, 0, len(can)+len(shared))
	for _, host := range append(can, shared...) {
		hosts = append(hosts, *host)
	}
	if len(identity.HostsMatching(agent, hosts)) > 0 {
		return "", nil
	}
	if some, err := r.someHosts(ctx, agent.Namespace); err != nil || len(some) == 0 {
		return "", err
	}
	return fmt.Sprintf("no BareMetalHost has one of the MAC addresses %s and serial number %q",
		strings.Join(agent.MACAddresses(), " "), agent.Status.Inventory.SystemVendor.SerialNumber), nil
}

// toldByInfraEnv reports whether a config takes the only Agent of its own InfraEnv for its host, and has taken no other one (DESIGN D6).
func (r *Reconciler) toldByInfraEnv(ctx context.Context, agent *assisted.Agent) (bool, error) {
	alone, err := r.in(agent.Namespace).Configs(ctx, index.ConfigAlone, agent.Labels[assisted.InfraEnvLabel])
	return slices.ContainsFunc(alone, func(c *bootstrapv1.OpenshiftAssistedConfig) bool {
		recorded := c.Annotations[bootstrapv1.AgentAnnotation]
		return recorded == "" || recorded == agent.Name
	}), err
}

// someHosts returns up to two BareMetalHosts of a namespace, any of them.
func (r *Reconciler) someHosts(ctx context.Context, namespace string) ([]bmov1alpha1.BareMetalHost, error) {
	const enough = 2
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(namespace), client.Limit(enough), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	return hosts.Items, nil
}

func (r *Reconciler) in(namespace string) index.Finder {
	return index.Finder{Reader: r.Client, Namespace: namespace}
}

// note writes the text to the Agent, and an event when it is new. An empty text removes it.
func (r *Reconciler) note(ctx context.Context, agent *assisted.Agent, text string) error {
	if agent.Annotations[bootstrapv1.RecognitionAnnotation] == text {
		return nil
	}
	err := kube.Patch(ctx, r.Client, agent, func(a *assisted.Agent) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, bootstrapv1.RecognitionAnnotation, text)
		if text == "" {
			delete(a.Annotations, bootstrapv1.RecognitionAnnotation)
		}
	})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("note on Agent %s that it is not recognised: %w", agent.Name, err))
	}
	if text != "" {
		r.Recorder.Eventf(
			agent, nil, corev1.EventTypeWarning, bootstrapv1.EventAgentNotRecognized, bootstrapv1.EventAgentNotRecognized, "%s", text,
		)
	}
	return nil
}

// claimedFor is every Agent that is claimed for a Machine.
func (r *Reconciler) claimedFor(ctx context.Context, o client.Object) []reconcile.Request {
	if len(r.Gate.Missing(assisted.CRDAgents)) > 0 {
		return nil
	}
	agents, err := r.in(o.GetNamespace()).Agents(ctx, index.AgentClaim, assisted.Claim(o))
	return requests(ctx, agents, err)
}

// all is every Agent of the object's namespace: while its Cluster was paused, its Machine may have vanished.
func (r *Reconciler) all(ctx context.Context, o client.Object) []reconcile.Request {
	if len(r.Gate.Missing(assisted.CRDAgents)) > 0 {
		return nil
	}
	return kube.Requests(ctx, r.Client, &assisted.AgentList{}, kube.Every[*assisted.Agent], client.InNamespace(o.GetNamespace()))
}

// fromHost is every Agent that can be a BareMetalHost: the host may change what is said of it. The first host of a namespace, and the last
// one, change that for all Agents.
func (r *Reconciler) fromHost(ctx context.Context, o client.Object) []reconcile.Request {
	if len(r.Gate.Missing(assisted.CRDAgents)) > 0 {
		return nil
	}
	some, err := r.someHosts(ctx, o.GetNamespace())
	if err == nil && len(some) < 2 {
		return r.all(ctx, o)
	}
	return r.concerned(ctx, o)
}

// concerned is every Agent that can be a BareMetalHost.
func (r *Reconciler) concerned(ctx context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*bmov1alpha1.BareMetalHost)
	if !ok {
		return nil
	}
	agents, err := index.Finder{Reader: r.Client, Namespace: host.Namespace, Events: true}.AgentsOf(ctx, host)
	return requests(ctx, agents, err)
}

// requests are those of Agents that an event concerns. It has nobody to return an error to, so the log tells of it.
func requests(ctx context.Context, agents []*assisted.Agent, err error) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Agents that an event concerns")
	}
	requests := make([]reconcile.Request, 0, len(agents))
	for _, agent := range agents {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(agent)})
	}
	return requests
}
