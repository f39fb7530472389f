// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
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
	c, err := capicontrollerutil.NewControllerManagedBy(mgr, log).
		Named("agent").
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.claimedFor)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.all), predicates.ClusterPausedTransitions(mgr.GetScheme(), log)).
		WithOptions(options).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("set up the agent controller: %w", err)
	}
	cache := mgr.GetCache()
	return errors.Join(
		r.Gate.Watch(c, assisted.CRDAgents, source.Kind(cache, client.Object(&assisted.Agent{}), &handler.EnqueueRequestForObject{})),
		r.Gate.Watch(
			c, metal3.CRDBareMetalHosts,
			source.Kind(cache, client.Object(&bmov1alpha1.BareMetalHost{}), handler.EnqueueRequestsFromMapFunc(r.inNamespace)),
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
	_, err := kube.Get(ctx, r.Client, key, infraEnv)
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
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(agent.Namespace)); err != nil {
		return fmt.Errorf("list BareMetalHosts: %w", err)
	}
	text := ""
	if len(hosts.Items) > 0 && len(identity.HostsMatching(agent, hosts.Items)) == 0 {
		text = fmt.Sprintf("no BareMetalHost has one of the MAC addresses %s and serial number %q",
			strings.Join(agent.MACAddresses(), " "), agent.Status.Inventory.SystemVendor.SerialNumber)
	}
	return r.note(ctx, agent, text)
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
	claim := assisted.Claim(o)
	return r.requests(ctx, o.GetNamespace(), func(a *assisted.Agent) bool { return a.Annotations[bootstrapv1.ClaimAnnotation] == claim })
}

// all is every Agent of the object's namespace: while its Cluster was paused, its Machine may have vanished.
func (r *Reconciler) all(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requests(ctx, o.GetNamespace(), kube.Every[*assisted.Agent])
}

// inNamespace is every unclaimed Agent of the object's namespace: another host may change what is said of them.
func (r *Reconciler) inNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return r.requests(ctx, o.GetNamespace(), func(a *assisted.Agent) bool { return a.Annotations[bootstrapv1.ClaimAnnotation] == "" })
}

func (r *Reconciler) requests(ctx context.Context, namespace string, keep func(*assisted.Agent) bool) []reconcile.Request {
	if len(r.Gate.Missing(assisted.CRDAgents)) > 0 {
		return nil
	}
	return kube.Requests(ctx, r.Client, &assisted.AgentList{}, keep, client.InNamespace(namespace))
}
