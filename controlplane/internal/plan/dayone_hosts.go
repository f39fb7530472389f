// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Changeable reports whether the AgentClusterInstall may still follow the control plane: until the installation begins, and while the
// service has refused what it was asked for.
func Changeable(v *view.View) bool {
	if v.Life.Installed() || v.Install.AgentClusterInstall == nil || !v.Install.AgentClusterInstall.DeletionTimestamp.IsZero() {
		return false
	}
	phase := v.Install.Phase()
	return phase == assisted.PhaseWaiting ||
		phase == assisted.PhaseUnknown && v.Install.AgentClusterInstall.Spec.HoldInstallation &&
			v.Install.AgentClusterInstall.Status.DebugInfo.State == ""
}

// mayReopen reports whether the installation can still wait for more hosts: day 1 is open, or can be opened again.
func mayReopen(v *view.View) bool {
	phase := v.Install.Phase()
	return phase == assisted.PhaseWaiting || phase == assisted.PhaseUnknown && v.Install.AgentClusterInstall.Spec.HoldInstallation
}

// DecideDayOne decides the next step of the first installation.
func DecideDayOne(v *view.View) DayOneStep {
	if v.Life.Installed() || v.Install.AgentClusterInstall == nil || v.Install.ClusterDeployment == nil ||
		!v.Install.AgentClusterInstall.DeletionTimestamp.IsZero() {
		return DayOneStep{}
	}
	wait := ptr.Deref(v.ControlPlane.Spec.Install.WorkerWaitTimeoutSeconds, controlplanev1.DefaultWorkerWaitTimeoutSeconds)
	d := wantedHosts(v)
	d.Phase, d.Hosts, d.Now = v.Install.Phase(), boundHosts(v), v.Now
	d.WorkerWait = time.Duration(wait) * time.Second
	d.Hold, d.Requirements = v.Install.AgentClusterInstall.Spec.HoldInstallation, v.Install.AgentClusterInstall.Spec.ProvisionRequirements
	d.UserHold = ptr.Deref(v.ControlPlane.Spec.Install.HoldInstallation, false)
	d.Set, d.Closed = assisted.DayOneAgents(v.Install.AgentClusterInstall)
	if started, err := time.Parse(time.RFC3339, v.Install.AgentClusterInstall.Annotations[assisted.WorkerWaitStartedAnnotation]); err == nil {
		d.WaitStarted = &started
	}
	return d.Next()
}

// wantedHosts are the numbers of hosts that the first installation is to have.
func wantedHosts(v *view.View) DayOne {
	return DayOne{
		Replicas: int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)), Workers: v.Machines.WantedWorkers,
		Arbiters: view.Arbiters(v.ControlPlane.Spec.Install),
	}
}

// WantedHosts says what the first installation waits for.
func WantedHosts(v *view.View) string { return wantedHosts(v).Wanted() }

// boundHosts are the Agents that are bound to the ClusterDeployment. One whose Machine is gone or is being deleted takes no part, nor does
// one that is not approved any more.
func boundHosts(v *view.View) []Host {
	living := sets.New[string]()
	for _, m := range append(v.Machines.Owned.UnsortedList(), v.Machines.Workers...) {
		if m.DeletionTimestamp.IsZero() {
			living.Insert(assisted.Claim(m))
		}
	}
	bound := v.BoundAgents()
	hosts := make([]Host, 0, len(bound))
	for _, a := range bound {
		claimed := living.Has(a.Annotations[bootstrapv1.ClaimAnnotation])
		hosts = append(hosts, Host{
			Name:       a.Name,
			Machine:    view.MachineOf(a),
			Role:       a.Spec.Role,
			Ready:      a.ReadyToInstall() && claimed,
			Leaving:    !claimed || !a.Spec.Approved,
			Installing: a.Installing(),
			Lost:       a.Condition(assisted.ConditionConnected).Is(corev1.ConditionFalse),
		})
	}
	return hosts
}
