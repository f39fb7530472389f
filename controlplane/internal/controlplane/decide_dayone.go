// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// defaultWorkerWaitTimeoutSeconds is used when spec.install.workerWaitTimeoutSeconds is not set.
const defaultWorkerWaitTimeoutSeconds = 1800

// installation decides how the AgentClusterInstall is brought forward: what has changed in the control plane comes before the next step of
// day 1, so that the installation never begins with what was asked for before. One that is not held any more is held again first: the
// service may begin at any moment, and then refuses the patch.
func installation(s *scope) (*render.InstallUpdate, plan.DayOneStep) {
	step := dayOne(s)
	if !changeable(s) {
		return nil, step
	}
	update, err := render.Install{ControlPlane: s.controlPlane, Cluster: s.cluster, Workers: s.wantedWorkers}.Update(s.install)
	if err != nil || update == nil {
		return nil, step // An error is one of the webhook's, which a control plane older than the webhook's rules may not have met.
	}
	const note = "spec.install has changed"
	if !s.install.Spec.HoldInstallation {
		return nil, plan.DayOneStep{Action: plan.DayOneReopen, Note: note}
	}
	return update, plan.DayOneStep{Note: note}
}

// changeable reports whether the AgentClusterInstall may still follow the control plane: until the installation begins, and while the
// service has refused what it was asked for.
func changeable(s *scope) bool {
	if s.installed() || s.install == nil || !s.install.DeletionTimestamp.IsZero() {
		return false
	}
	phase := assisted.PhaseOf(s.install)
	return phase == assisted.PhaseWaiting ||
		phase == assisted.PhaseUnknown && s.install.Spec.HoldInstallation && s.install.Status.DebugInfo.State == ""
}

// mayReopen reports whether the installation can still wait for more hosts: day 1 is open, or can be opened again.
func mayReopen(s *scope) bool {
	phase := assisted.PhaseOf(s.install)
	return phase == assisted.PhaseWaiting || phase == assisted.PhaseUnknown && s.install.Spec.HoldInstallation
}

// dayOne gathers what decides about the first installation.
func dayOne(s *scope) plan.DayOneStep {
	if s.installed() || s.install == nil || s.clusterDeployment == nil || !s.install.DeletionTimestamp.IsZero() {
		return plan.DayOneStep{}
	}
	wait := ptr.Deref(s.controlPlane.Spec.Install.WorkerWaitTimeoutSeconds, defaultWorkerWaitTimeoutSeconds)
	d := plan.DayOne{
		Phase:        assisted.PhaseOf(s.install),
		Replicas:     int(ptr.Deref(s.controlPlane.Spec.Replicas, 0)),
		Workers:      s.wantedWorkers,
		Arbiters:     view.Arbiters(s.controlPlane.Spec.Install),
		WorkerWait:   time.Duration(wait) * time.Second,
		Hold:         s.install.Spec.HoldInstallation,
		UserHold:     ptr.Deref(s.controlPlane.Spec.Install.HoldInstallation, false),
		Requirements: s.install.Spec.ProvisionRequirements,
		Hosts:        boundHosts(s),
		Now:          s.now,
	}
	d.Set, d.Closed = assisted.DayOneAgents(s.install)
	if started, err := time.Parse(time.RFC3339, s.install.Annotations[assisted.WorkerWaitStartedAnnotation]); err == nil {
		d.WaitStarted = &started
	}
	return d.Next()
}

// boundHosts are the Agents that are bound to the ClusterDeployment. One whose Machine is gone or is being deleted takes no part, nor does
// one that is not approved any more.
func boundHosts(s *scope) []plan.Host {
	living := sets.New[string]()
	for _, m := range append(s.machines.UnsortedList(), s.workers...) {
		if m.DeletionTimestamp.IsZero() {
			living.Insert(assisted.Claim(m))
		}
	}
	bound := boundAgents(s)
	hosts := make([]plan.Host, 0, len(bound))
	for _, a := range bound {
		claimed := living.Has(a.Annotations[bootstrapv1.ClaimAnnotation])
		hosts = append(hosts, plan.Host{
			Name:       a.Name,
			Machine:    machineOf(a),
			Role:       a.Spec.Role,
			Ready:      a.ReadyToInstall() && claimed,
			Leaving:    !claimed || !a.Spec.Approved,
			Installing: a.Installing(),
			Lost:       a.Condition(assisted.ConditionConnected).Is(corev1.ConditionFalse),
		})
	}
	return hosts
}

// boundAgents are the Agents that are bound to the ClusterDeployment, by name.
func boundAgents(s *scope) []*assisted.Agent {
	var bound []*assisted.Agent
	for i := range s.agents {
		if s.agents[i].BoundTo(s.controlPlane.Namespace, s.controlPlane.Name) {
			bound = append(bound, &s.agents[i])
		}
	}
	return bound
}
