// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/agent"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

const (
	// rebootAnnotation, on a BareMetalHost, asks baremetal-operator for one power cycle; it removes the annotation itself.
	rebootAnnotation = "reboot.metal3.io"

	// rebootMode cuts the power: a frozen discovery agent does not react to a soft shutdown in time.
	rebootMode = `{"mode":"hard"}`
)

// apply carries the decision out. Each step is complete in itself: after a crash the next pass sees what was done and goes on from there.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	d := &s.decision
	if d.healthy.Reason == bootstrapv1.HostErrorReason &&
		conditions.GetReason(s.config, bootstrapv1.HostHealthyCondition) != d.healthy.Reason {
		r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostError, "%s", d.healthy.Message)
	}
	if d.hook {
		if err := r.setHook(ctx, s); err != nil {
			return err
		}
	}
	r.tellDispute(s)
	if d.withdraw != nil {
		return r.withdraw(ctx, s, d.withdraw)
	}
	if d.leftover != nil {
		if err := agent.Delete(ctx, r.Client, d.leftover, "it is of an earlier life of the host"); err != nil {
			return err
		}
		r.normal(s, bootstrapv1.EventAgentDeleted, "Deleted Agent %s of an earlier life of the host", d.leftover.Name)
	}
	if d.claim != nil {
		if err := r.claim(ctx, s, d.claim); err != nil {
			return err
		}
	}
	if d.record != "" {
		// The deferred patch writes it. The Agent is claimed or deleted in the pass that follows.
		metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.AgentAnnotation, d.record)
	}
	if d.reboot {
		return r.reboot(ctx, s)
	}
	return r.applyInstallation(ctx, s)
}

// applyInstallation takes the claimed host into the cluster.
func (r *Reconciler) applyInstallation(ctx context.Context, s *scope) error {
	d := &s.decision
	if d.bind != nil {
		if err := r.bind(ctx, s, d.bind); err != nil {
			return err
		}
	}
	if d.disk != "" {
		// What the Agent says of its disk exists by now; the deferred patch of the config writes the other side.
		metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.InstallationDiskAnnotation, d.disk)
	}
	if d.approve != nil {
		return r.approve(ctx, s, d.approve)
	}
	if d.nudge != nil {
		return r.nudge(ctx, d.nudge, d.nudgeValue)
	}
	return nil
}

func (r *Reconciler) setHook(ctx context.Context, s *scope) error {
	before := s.machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.machine.ObjectMeta, bootstrapv1.AgentDeletionHook, bootstrapv1.AgentDeletionHookOwner)
	if err := r.Client.Patch(ctx, s.machine, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("set the pre-terminate hook on Machine %s: %w", s.machine.Name, err)
	}
	return nil
}

// claim writes the Machine's claim to the Agent, unless the Agent changed since it was read: of two Machines that recognise one Agent, one
// wins and the other sees it in the next pass.
func (r *Reconciler) claim(ctx context.Context, s *scope, a *assisted.Agent) error {
	before := a.DeepCopy()
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, bootstrapv1.ClaimAnnotation, s.claim())
	delete(a.Annotations, bootstrapv1.RecognitionAnnotation)
	if err := r.Client.Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("claim Agent %s for Machine %s: %w", a.Name, s.machine.Name, err)
	}
	r.normal(s, bootstrapv1.EventAgentClaimed, "Claimed Agent %s for Machine %s", a.Name, s.machine.Name)
	return nil
}

// withdraw takes back what let an Agent into the cluster, in one patch: an approved Agent that is merely unbound would be installed by
// whoever binds it next. The hostname stays: the service would clean up the wrong Node (ASSISTED 8.8 rule 5). The claim stays too, unless
// another Agent is vouched for.
func (r *Reconciler) withdraw(ctx context.Context, s *scope, a *assisted.Agent) error {
	before := a.DeepCopy()
	a.Spec.ClusterDeploymentName, a.Spec.Approved = nil, false
	if s.decision.release {
		delete(a.Annotations, bootstrapv1.ClaimAnnotation)
	}
	if err := r.Client.Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("take the approval of Agent %s back: %w", a.Name, err)
	}
	r.event(
		s, corev1.EventTypeWarning, bootstrapv1.EventApprovalWithdrawn, "Agent %s is unbound and not approved any more: %s", a.Name,
		s.decision.recognized.Message,
	)
	return nil
}

// tellDispute records an event when something new has the identity of a claimed host.
func (r *Reconciler) tellDispute(s *scope) {
	d := &s.decision
	if d.disputed && d.withdraw == nil && d.recognized.Message != conditions.GetMessage(s.config, bootstrapv1.HostRecognizedCondition) {
		r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostDisputed, "%s", d.recognized.Message)
	}
}

// bind is the one patch that lets a host into the cluster. All fields go together: the service ignores edits after the host has left its
// pre-install states (ASSISTED fact 3), and an unbound Agent may keep values of an earlier bind (8.8 rule 5).
func (r *Reconciler) bind(ctx context.Context, s *scope, b *binding) error {
	before := b.agent.DeepCopy()
	b.agent.Spec.Role = b.role
	b.agent.Spec.Hostname = b.hostname
	b.agent.Spec.NodeLabels = b.labels
	b.agent.Spec.MachineConfigPool = b.pool
	b.agent.Spec.IgnitionConfigOverrides = b.ignition
	b.agent.Spec.InstallerArgs = b.installerArgs
	b.agent.Spec.FencingCredentialsSecretRef = b.fencing
	b.agent.Spec.ClusterDeploymentName = &b.cluster
	b.setDisk()
	// Of a host with a chosen disk the approval comes with the disk.
	b.agent.Spec.Approved = b.disk == ""
	// CAPI deletes Nodes itself; without the annotation unbinding or deleting the Agent would wait for the installed cluster (ASSISTED 8.5f).
	metav1.SetMetaDataAnnotation(&b.agent.ObjectMeta, assisted.SkipSpokeCleanupAnnotation, "true")
	ctrl.LoggerFrom(ctx).Info("Binding Agent", "Agent", b.agent.Name, "role", b.role, "hostname", b.hostname)
	if err := r.Client.Patch(ctx, b.agent, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("bind Agent %s to ClusterDeployment %s: %w", b.agent.Name, b.cluster.Name, err)
	}
	if b.disk != "" {
		r.normal(
			s, bootstrapv1.EventAgentBound, "Bound Agent %s as %s %s to ClusterDeployment %s; it is approved when it has reported its disk %s",
			b.agent.Name, b.role, b.hostname, b.cluster.Name, b.disk,
		)
		return nil
	}
	r.normal(
		s, bootstrapv1.EventAgentBound, "Approved Agent %s as %s %s and bound it to ClusterDeployment %s", b.agent.Name, b.role, b.hostname,
		b.cluster.Name,
	)
	return nil
}

// nudge changes the Agent, because the service tries a refused bind again only when the Agent changes (ASSISTED 8.4).
func (r *Reconciler) nudge(ctx context.Context, a *assisted.Agent, value string) error {
	before := a.DeepCopy()
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, bootstrapv1.BindNudgeAnnotation, value)
	if err := r.Client.Patch(ctx, a, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("retry the bind of Agent %s: %w", a.Name, err)
	}
	return nil
}

// reboot power-cycles a host whose Agent was lost. The loss is confirmed without the cache first, and forgotten on the config afterwards,
// so that one loss leads to one reboot.
func (r *Reconciler) reboot(ctx context.Context, s *scope) error {
	name := s.config.Annotations[bootstrapv1.AgentAnnotation]
	lost := &assisted.Agent{}
	exists, err := kube.Get(ctx, r.APIReader, client.ObjectKey{Namespace: s.config.Namespace, Name: name}, lost)
	if err != nil || exists {
		return err
	}
	before := s.host.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.host.ObjectMeta, rebootAnnotation, rebootMode)
	if err := r.Client.Patch(ctx, s.host, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("reboot BareMetalHost %s: %w", s.host.Name, err)
	}
	delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
	r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostRebooted, "Agent %s was lost: rebooting BareMetalHost %s", name, s.host.Name)
	return nil
}

// applyDeparture deletes the Machine's Agents and, when they are gone, lets core go on.
func (r *Reconciler) applyDeparture(ctx context.Context, s *scope) error {
	for i := range s.departure.agents {
		if err := agent.Delete(ctx, r.Client, &s.departure.agents[i], "its Machine is being deleted"); err != nil {
			return err
		}
	}
	if !s.departure.unhook {
		return nil
	}
	if exists, err := r.leavesUncached(ctx, s); err != nil || exists {
		return err // The event of the Agent that the cache does not show yet brings the next pass.
	}
	before := s.machine.DeepCopy()
	delete(s.machine.Annotations, bootstrapv1.AgentDeletionHook)
	if err := r.Client.Patch(ctx, s.machine, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the pre-terminate hook of Machine %s: %w", s.machine.Name, err)
	}
	return nil
}

// leavesUncached reports whether an Agent of the Machine exists, read without the cache: once the hook is off, nobody looks for one any
// more, and the host must not be free while it has one (DESIGN D19).
func (r *Reconciler) leavesUncached(ctx context.Context, s *scope) (bool, error) {
	if slices.Contains(s.missingCRDs, assisted.CRDAgents) {
		return false, nil
	}
	agents := &assisted.AgentList{}
	if err := r.APIReader.List(ctx, agents, client.InNamespace(s.machine.Namespace)); err != nil {
		return false, fmt.Errorf("list Agents: %w", err)
	}
	return slices.ContainsFunc(agents.Items, func(a assisted.Agent) bool { return leaves(s, &a) }), nil
}
