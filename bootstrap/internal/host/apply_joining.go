// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// applyJoining does the one thing that was decided to take the claimed host into the cluster.
func (r *Reconciler) applyJoining(ctx context.Context, s *scope, d joining) kube.Outcome {
	switch {
	case d.bind != nil:
		outcome := kube.OutcomeOf(r.bind(ctx, s, d.bind))
		r.binds.note(s.machine.UID, s.now, outcome)
		return outcome
	case d.approve != nil:
		return kube.OutcomeOf(r.approve(ctx, s, d.approve))
	case d.nudge != nil:
		return kube.OutcomeOf(r.nudge(ctx, d.nudge, d.nudgeValue))
	}
	return kube.Outcome{}
}

// bind is the one patch that lets a host into the cluster. All fields go together: the service ignores edits after the host has left its
// pre-install states (ASSISTED fact 3), and an unbound Agent may keep values of an earlier bind (8.8 rule 5).
func (r *Reconciler) bind(ctx context.Context, s *scope, b *binding) error {
	ctrl.LoggerFrom(ctx).Info("Binding Agent", "Agent", b.agent.Name, "role", b.role, "hostname", b.hostname)
	if err := r.patchAgent(ctx, s, b.agent, b.set); err != nil {
		return kube.Explained(err, fmt.Sprintf("the binding of Agent %s to ClusterDeployment %s", b.agent.Name, b.cluster.Name))
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

// set writes the binding to an Agent.
func (b *binding) set(a *assisted.Agent) {
	if b.claim != "" {
		setClaim(a, b.claim)
	}
	a.Spec.Role = b.role
	a.Spec.Hostname = b.hostname
	a.Spec.NodeLabels = b.labels
	a.Spec.MachineConfigPool = b.pool
	a.Spec.IgnitionConfigOverrides = b.ignition
	a.Spec.InstallerArgs = b.installerArgs
	a.Spec.FencingCredentialsSecretRef = b.fencing
	a.Spec.ClusterDeploymentName = &b.cluster
	b.setDisk(a)
	// Of a host with a chosen disk the approval comes with the disk.
	a.Spec.Approved = b.disk == ""
	// CAPI deletes Nodes itself; without the annotation unbinding or deleting the Agent would wait for the installed cluster (ASSISTED 8.5f).
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, assisted.SkipSpokeCleanupAnnotation, "true")
}

// nudge changes the Agent, because the service tries a refused bind again only when the Agent changes (ASSISTED 8.4).
func (r *Reconciler) nudge(ctx context.Context, a *assisted.Agent, value string) error {
	err := kube.Patch(ctx, r.Client, a, func(a *assisted.Agent) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, bootstrapv1.BindNudgeAnnotation, value)
	})
	if err != nil {
		return fmt.Errorf("retry the bind of Agent %s: %w", a.Name, err)
	}
	return nil
}
