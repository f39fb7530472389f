// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
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
	// hosts are the BareMetalHosts that can matter for the identity of the Machine's host, by name.
	hosts []bmov1alpha1.BareMetalHost
	// host is the BareMetalHost that the infrastructure machine consumes; nil while there is none.
	host *bmov1alpha1.BareMetalHost
	// now is the time of the pass.
	now time.Time
	// held is for how long no bind is tried, because the last one has failed; 0 when one may be.
	held time.Duration
	// allAgents are the Agents that can matter for the identity of the Machine's host, by name.
	allAgents []assisted.Agent
	// agents are those of them that are of the config's InfraEnv or claimed for the Machine, by name.
	agents []assisted.Agent
	// livingClaims are those of their claims that are of other Machines that exist.
	livingClaims []string
	// install is the cluster's AgentClusterInstall; nil while there is none.
	install *hiveext.AgentClusterInstall
}

// lacksHook reports whether the Machine has to get its pre-terminate hook.
func (s *scope) lacksHook() bool { return s.machine.Annotations[bootstrapv1.AgentDeletionHook] == "" }

// lacksHost reports whether the Machine is one of Metal3 without a BareMetalHost. Metal3 finds a Node by the UID of that, so a host that
// joined now would never be the Machine's Node.
func (s *scope) lacksHost() bool {
	return s.host == nil && metal3.IsMachineRef(s.machine.Spec.InfrastructureRef)
}

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
	mapper := mapping.Mapper{Client: r.Client, Gate: r.Gate}
	err = r.infraMachines.Watch(ctrl.LoggerFrom(ctx), infra, handler.EnqueueRequestsFromMapFunc(mapper.FromInfraMachine), r.changes)
	if err != nil {
		return fmt.Errorf("watch %s: %w", infra.GetKind(), err)
	}
	key, chosen := metal3.HostKey(infra)
	if !chosen || len(r.Gate.Missing(metal3.CRDBareMetalHosts)) > 0 {
		return nil
	}
	host, err := kube.GetOrNil[bmov1alpha1.BareMetalHost](ctx, r.Client, key)
	if err != nil || host == nil {
		return err
	}
	s.hosts = []bmov1alpha1.BareMetalHost{*host}
	s.host = metal3.HostOf(infra, s.hosts)
	return nil
}

func (r *Reconciler) observeAgents(ctx context.Context, s *scope) error {
	candidates, err := index.Finder{Reader: r.Client, Namespace: s.config.Namespace}.Candidates(ctx, index.Wanted{
		Host: s.host, Claim: s.claim(), Recorded: s.config.Annotations[bootstrapv1.AgentAnnotation],
		InfraEnv: s.config.Annotations[bootstrapv1.InfraEnvAnnotation],
		Alone:    s.config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv,
	})
	if err != nil {
		return err
	}
	s.allAgents, s.hosts = candidates.Agents, candidates.Hosts
	for i := range s.allAgents {
		if s.concerns(&s.allAgents[i]) {
			s.agents = append(s.agents, s.allAgents[i])
		}
		if err := r.observeClaim(ctx, s, &s.allAgents[i]); err != nil {
			return err
		}
	}
	return nil
}

// observeClaim notes an Agent's claim if it is of another Machine that exists.
func (r *Reconciler) observeClaim(ctx context.Context, s *scope, agent *assisted.Agent) error {
	name, uid, claimed := agent.ClaimedFor()
	if !claimed || uid == string(s.machine.UID) {
		return nil
	}
	machine, err := kube.GetOrNil[clusterv1.Machine](ctx, r.Client, client.ObjectKey{Namespace: agent.Namespace, Name: name})
	if err == nil && machine != nil && string(machine.UID) == uid {
		s.livingClaims = append(s.livingClaims, assisted.Claim(machine))
	}
	return err
}

// observeInstall finds the cluster's AgentClusterInstall by the Cluster's label, within the namespace only (DESIGN D13).
func (r *Reconciler) observeInstall(ctx context.Context, s *scope) error {
	installs, err := index.Finder{Reader: r.Client, Namespace: s.config.Namespace}.Installs(ctx, s.machine.Spec.ClusterName)
	if err != nil {
		return err
	}
	for _, install := range installs {
		if install.DeletionTimestamp.IsZero() {
			s.install = install
		}
	}
	return nil
}
