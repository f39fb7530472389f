// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/agent"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const (
	// rebootAnnotation, on a BareMetalHost, asks baremetal-operator for one power cycle; it removes the annotation itself.
	rebootAnnotation = "reboot.metal3.io"

	// rebootMode cuts the power: a frozen discovery agent does not react to a soft shutdown in time.
	rebootMode = `{"mode":"hard"}`
)

// applyIdentity does the one thing that was decided about the identity of the host.
func (r *Reconciler) applyIdentity(ctx context.Context, s *scope, d recognition) kube.Outcome {
	switch {
	case d.withdraw != nil:
		return kube.OutcomeOf(r.withdraw(ctx, s, d))
	case d.leftover != nil:
		return kube.OutcomeOf(r.deleteLeftover(ctx, s, d.leftover))
	case d.claim != nil:
		return kube.OutcomeOf(r.claim(ctx, s, d.claim))
	case d.reboot:
		return r.reboot(ctx, s)
	case d.wait.cycle:
		return kube.OutcomeOf(r.bootAgain(ctx, s, d.wait.boot+1))
	}
	return kube.Outcome{}
}

// deleteLeftover deletes an Agent of an earlier life of the host.
func (r *Reconciler) deleteLeftover(ctx context.Context, s *scope, a *assisted.Agent) error {
	if err := agent.Delete(ctx, r.Client, a, "it is of an earlier life of the host"); err != nil {
		return err
	}
	r.normal(s, bootstrapv1.EventAgentDeleted, "Deleted Agent %s of an earlier life of the host", a.Name)
	return nil
}

// claim writes the Machine's claim to the Agent, unless the Agent changed since it was read: of two Machines that recognise one Agent, one
// wins and the other sees it in the next pass.
func (r *Reconciler) claim(ctx context.Context, s *scope, a *assisted.Agent) error {
	err := r.patchAgent(ctx, s, a, func(a *assisted.Agent) { setClaim(a, s.claim()) })
	if err != nil {
		return kube.Explained(err, fmt.Sprintf("the claim of Agent %s for Machine %s", a.Name, s.machine.Name))
	}
	r.normal(s, bootstrapv1.EventAgentClaimed, "Claimed Agent %s for Machine %s", a.Name, s.machine.Name)
	return nil
}

// setClaim claims an Agent for a Machine. What was said of an Agent that nobody claims goes.
func setClaim(a *assisted.Agent, claim string) {
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, bootstrapv1.ClaimAnnotation, claim)
	delete(a.Annotations, bootstrapv1.RecognitionAnnotation)
}

// withdraw takes back what let an Agent into the cluster, in one patch: an approved Agent that is merely unbound would be installed by
// whoever binds it next. The hostname stays: the service would clean up the wrong Node (ASSISTED 8.8 rule 5). The claim stays too, unless
// another Agent is vouched for.
func (r *Reconciler) withdraw(ctx context.Context, s *scope, d recognition) error {
	err := r.patchAgent(ctx, s, d.withdraw, func(a *assisted.Agent) {
		a.Spec.ClusterDeploymentName, a.Spec.Approved = nil, false
		if d.release {
			delete(a.Annotations, bootstrapv1.ClaimAnnotation)
		}
	})
	if err != nil {
		return kube.Explained(err, fmt.Sprintf("Agent %s without its approval", d.withdraw.Name))
	}
	r.event(
		s, corev1.EventTypeWarning, bootstrapv1.EventApprovalWithdrawn, "Agent %s is unbound and not approved any more: %s", d.withdraw.Name,
		d.recognized.Message,
	)
	return nil
}

// tellDispute records an event when something new has the identity of a claimed host.
func (r *Reconciler) tellDispute(s *scope, d recognition) {
	if d.disputed && d.withdraw == nil && d.recognized.Message != conditions.GetMessage(s.config, bootstrapv1.HostRecognizedCondition) {
		r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostDisputed, "%s", d.recognized.Message)
	}
}

// reboot power-cycles a host whose Agent was lost. It confirms without the cache first that the Agent is gone and the host is no Node, and
// the config forgets the Agent afterwards; until then the record of the power cycle names it, so that one loss leads to one reboot.
func (r *Reconciler) reboot(ctx context.Context, s *scope) kube.Outcome {
	name := s.config.Annotations[bootstrapv1.AgentAnnotation]
	exists, err := kube.Get(ctx, r.APIReader, client.ObjectKey{Namespace: s.config.Namespace, Name: name}, &assisted.Agent{})
	if err != nil {
		return kube.OutcomeOf(err)
	}
	if exists {
		return kube.Outcome{}
	}
	if waits, err := r.awaitsNode(ctx, s); err != nil || !waits {
		return kube.OutcomeOf(err)
	}
	return kube.OutcomeOf(r.powerCycle(ctx, s, powerCycle{Boot: 1, Lost: name}, fmt.Sprintf("Agent %s was lost", name)))
}

// bootAgain power-cycles a host that has not registered in time. It confirms without the cache first that the host is no Node and has not
// registered after all: events may be late, by more than a host takes to install.
func (r *Reconciler) bootAgain(ctx context.Context, s *scope, boot int) error {
	agents := &assisted.AgentList{}
	err := r.APIReader.List(ctx, agents, client.InNamespace(s.config.Namespace), client.MatchingLabels{
		assisted.InfraEnvLabel: s.config.Annotations[bootstrapv1.InfraEnvAnnotation],
	})
	if err != nil {
		return fmt.Errorf("list the Agents of the InfraEnv of Machine %s: %w", s.machine.Name, err)
	}
	if late, err := r.anyIs(ctx, s, agents.Items, mayBeOf); err != nil || late {
		return err // The event of the Agent, which is late, triggers the next pass.
	}
	if waits, err := r.awaitsNode(ctx, s); err != nil || !waits {
		return err
	}
	return r.powerCycle(ctx, s, powerCycle{Boot: boot}, fmt.Sprintf("BareMetalHost %s has not registered in time", s.host.Name))
}

// mayBeOf reports whether an Agent that the pass has not seen as it is now may be that of the Machine's host.
func mayBeOf(s *scope, a *assisted.Agent) bool {
	seen := slices.ContainsFunc(s.allAgents, func(known assisted.Agent) bool {
		return known.Name == a.Name && known.ResourceVersion == a.ResourceVersion
	})
	return !seen && (s.config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv || identity.Matches(a, s.host, s.hosts))
}

// anyIs reports whether something is so of one of the Agents, which were read without the cache. An address proves nothing that other
// hosts have as well, and the pass knows only those around the Agents that the cache has shown: of an Agent of which it seems to be so it
// looks up the hosts too. Otherwise what it waits for might never come.
func (r *Reconciler) anyIs(ctx context.Context, s *scope, agents []assisted.Agent, is func(*scope, *assisted.Agent) bool) (bool, error) {
	for i := range agents {
		if !is(s, &agents[i]) {
			continue
		}
		around, err := r.withHostsOf(ctx, s, &agents[i])
		if err != nil {
			return false, err
		}
		if is(around, &agents[i]) {
			return true, nil
		}
	}
	return false, nil
}

// withHostsOf returns the scope with the hosts that an Agent can be besides those that the pass knows. Without a host there are none to be
// told apart.
func (r *Reconciler) withHostsOf(ctx context.Context, s *scope, a *assisted.Agent) (*scope, error) {
	if s.host == nil {
		return s, nil
	}
	can, shared, err := index.Finder{Reader: r.Client, Namespace: s.machine.Namespace}.HostsOf(ctx, a)
	if err != nil {
		return nil, err
	}
	around := *s
	around.hosts = slices.Clone(s.hosts)
	for _, host := range slices.Concat(can, shared) {
		around.hosts = append(around.hosts, *host)
	}
	return &around, nil
}

// awaitsNode reads without the cache whether the Machine is still there, and its host no Node.
func (r *Reconciler) awaitsNode(ctx context.Context, s *scope) (bool, error) {
	machine := &clusterv1.Machine{}
	exists, err := kube.Get(ctx, r.APIReader, client.ObjectKeyFromObject(s.machine), machine)
	return exists && !isNode(machine), err
}

// powerCycle asks for one power cycle of the Machine's host, and records it in the same patch. A host that has changed since it was read
// may have been asked already.
func (r *Reconciler) powerCycle(ctx context.Context, s *scope, record powerCycle, why string) error {
	record.Machine, record.Time = s.claim(), s.now.UTC().Truncate(time.Second)
	// baremetal-operator's clock may be ahead. A record from before the provisioning would concern nobody, and the next pass would
	// power-cycle the host again.
	if ended := metal3.ProvisioningEnded(s.host).UTC(); record.Time.Before(ended) {
		record.Time = ended
	}
	written, err := kube.Rewrite(ctx, r.Client, s.host, func(h *bmov1alpha1.BareMetalHost) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, rebootAnnotation, rebootMode)
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, bootstrapv1.PowerCycleAnnotation, record.String())
	})
	if err != nil {
		return fmt.Errorf("reboot BareMetalHost %s: %w", s.host.Name, err)
	}
	r.wrote(s, bmov1alpha1.GroupVersion, kindHost, written)
	r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostRebooted, "%s: rebooting BareMetalHost %s", why, s.host.Name)
	return nil
}

// forgetPowerCycle takes the record of a power cycle off the Machine's host, and the request of it, if baremetal-operator has not carried
// it out: it may have been stopped, or told to leave the host alone.
func (r *Reconciler) forgetPowerCycle(ctx context.Context, s *scope) error {
	err := kube.PatchUnchanged(ctx, r.Client, s.host, func(h *bmov1alpha1.BareMetalHost) {
		delete(h.Annotations, bootstrapv1.PowerCycleAnnotation)
		delete(h.Annotations, rebootAnnotation)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the record of the power cycle of BareMetalHost %s: %w", s.host.Name, err)
	}
	return nil
}
