// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// scope is all that one pass knows. observe fills it; nothing is read afterwards, but what apply confirms before it does harm, and nothing
// in it changes but the config, on which status writes at the end of the pass.
type scope struct {
	config  *bootstrapv1.OpenshiftAssistedConfig
	machine *clusterv1.Machine
	// cluster is nil when it is gone.
	cluster *clusterv1.Cluster
	// save writes what the pass has recorded on the config, before something is done that the record has to precede.
	save func(context.Context) kube.Outcome

	// missingCRDs are the CRDs that are needed and not served yet; the fields below are unset for their kinds.
	missingCRDs []string
	// infraMachine is the Machine's Metal3Machine; nil while it does not exist, and for infrastructure of others.
	infraMachine *unstructured.Unstructured
	// hosts are the BareMetalHosts of the namespace, by name.
	hosts []bmov1alpha1.BareMetalHost
	// host is the BareMetalHost that the infrastructure machine consumes; nil while there is none.
	host *bmov1alpha1.BareMetalHost
	// now is the time of the pass.
	now time.Time
	// allAgents are the Agents of the namespace, by name.
	allAgents []assisted.Agent
	// agents are the Agents of the config's InfraEnv and those that are claimed for the Machine, by name.
	agents []assisted.Agent
	// livingClaims are the claims of the other Machines of the namespace.
	livingClaims []string
	// install is the cluster's AgentClusterInstall; nil while there is none.
	install *hiveext.AgentClusterInstall
}

// lacksHook reports whether the Machine has to get its pre-terminate hook.
func (s *scope) lacksHook() bool { return s.machine.Annotations[bootstrapv1.AgentDeletionHook] == "" }

// claim is the Machine's claim on an Agent.
func (s *scope) claim() string { return assisted.Claim(s.machine) }

// concerns reports whether an Agent is of the config's InfraEnv or claimed for the Machine.
func (s *scope) concerns(agent *assisted.Agent) bool {
	infraEnv := s.config.Annotations[bootstrapv1.InfraEnvAnnotation]
	return (infraEnv != "" && agent.Labels[assisted.InfraEnvLabel] == infraEnv) || agent.Annotations[bootstrapv1.ClaimAnnotation] == s.claim()
}

// hasClaimed reports whether an Agent is claimed for the Machine.
func (s *scope) hasClaimed() bool {
	return slices.ContainsFunc(s.agents, func(a assisted.Agent) bool { return a.Annotations[bootstrapv1.ClaimAnnotation] == s.claim() })
}

// observe reads everything that the pass decides on.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	s.missingCRDs = r.Gate.Missing(
		append(metal3.CRDs(s.machine.Spec.InfrastructureRef), assisted.CRDAgents, assisted.CRDAgentClusterInstalls)...)
	if err := r.observeHosts(ctx, s); err != nil {
		return err
	}
	// Each kind for itself: a Machine's Agent has to go before its host is freed, also while other kinds are missing.
	if !slices.Contains(s.missingCRDs, assisted.CRDAgents) {
		if err := r.observeAgents(ctx, s); err != nil {
			return err
		}
	}
	if slices.Contains(s.missingCRDs, assisted.CRDAgentClusterInstalls) {
		return nil
	}
	return r.observeInstall(ctx, s)
}

// observeHosts reads the Metal3Machine and its BareMetalHost. Infrastructure of others is not read: the manager has no role for it, and
// what of it concerns the host is on the Machine.
func (r *Reconciler) observeHosts(ctx context.Context, s *scope) error {
	if !metal3.IsMachineRef(s.machine.Spec.InfrastructureRef) {
		return nil
	}
	infra, err := infrastructure.Get(ctx, r.Client, s.machine.Spec.InfrastructureRef, s.machine.Namespace)
	if err != nil {
		return fmt.Errorf("read the infrastructure machine of Machine %s: %w", s.machine.Name, err)
	}
	if infra == nil {
		return nil
	}
	s.infraMachine = infra
	mapper := mapping.Mapper{Client: r.Client}
	if err := r.infraMachines.Watch(ctrl.LoggerFrom(ctx), infra, handler.EnqueueRequestsFromMapFunc(mapper.FromInfraMachine)); err != nil {
		return fmt.Errorf("watch %s: %w", infra.GetKind(), err)
	}
	if len(r.Gate.Missing(metal3.CRDBareMetalHosts)) > 0 {
		return nil
	}
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(s.config.Namespace)); err != nil {
		return fmt.Errorf("list BareMetalHosts: %w", err)
	}
	s.hosts = hosts.Items
	sort.Slice(s.hosts, func(i, j int) bool { return s.hosts[i].Name < s.hosts[j].Name })
	s.host = metal3.HostOf(infra, s.hosts)
	return nil
}

func (r *Reconciler) observeAgents(ctx context.Context, s *scope) error {
	agents := &assisted.AgentList{}
	if err := r.Client.List(ctx, agents, client.InNamespace(s.config.Namespace)); err != nil {
		return fmt.Errorf("list Agents: %w", err)
	}
	s.allAgents = agents.Items
	sort.Slice(s.allAgents, func(i, j int) bool { return s.allAgents[i].Name < s.allAgents[j].Name })
	for i := range s.allAgents {
		if s.concerns(&s.allAgents[i]) {
			s.agents = append(s.agents, s.allAgents[i])
		}
	}
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(s.config.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range machines.Items {
		if machines.Items[i].UID != s.machine.UID {
			s.livingClaims = append(s.livingClaims, assisted.Claim(&machines.Items[i]))
		}
	}
	return nil
}

// observeInstall finds the cluster's AgentClusterInstall by the Cluster's label, within the namespace only (DESIGN D13).
func (r *Reconciler) observeInstall(ctx context.Context, s *scope) error {
	installs := &hiveext.AgentClusterInstallList{}
	err := r.Client.List(
		ctx, installs, client.InNamespace(s.config.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.machine.Spec.ClusterName},
	)
	if err != nil {
		return fmt.Errorf("list AgentClusterInstalls of Cluster %s: %w", s.machine.Spec.ClusterName, err)
	}
	for i := range installs.Items {
		if installs.Items[i].DeletionTimestamp.IsZero() {
			s.install = &installs.Items[i]
		}
	}
	return nil
}
