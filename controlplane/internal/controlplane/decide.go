// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
)

// conflictRetryInterval is how often a taken name and another cluster that answers are looked at again: no watch tells when an object of
// somebody else goes away, or when the address of an unchanged kubeconfig leads to the right cluster again. Of a kubeconfig that was
// corrected, the new connection tells.
const conflictRetryInterval = time.Minute

// templateRetryInterval is how often an infrastructure template that does not exist is looked for: its kind, which a user chooses, is not
// watched. It is short because a file may well name the template after the control plane.
const templateRetryInterval = 10 * time.Second

// membersRetryInterval is how often etcd is asked whether the member of a Machine that waits may leave. What its operator reports triggers
// a pass too, and tells neither that etcd can be asked again nor that a member has recovered. No event tells either that the cluster can be
// asked again whether it has a Machine API that works.
const membersRetryInterval = time.Minute

// decision is what a pass does, by subject. Only decide fills it.
type decision struct {
	// deletion is decided instead of all else while the control plane is being deleted; its step is empty while it lives.
	deletion deletionDecision
	// obstacle stands in the way of all else.
	obstacle blockade
	// initialize: the cluster is installed and its API answers.
	initialize bool

	attempt    plan.AttemptDecision
	install    installDecision
	machines   plan.MachinesDecision
	leaving    plan.LeavingDecision
	remedy     plan.RemediationDecision
	rollout    plan.RolloutDecision
	upgrade    plan.UpgradeDecision
	kubeconfig kubeconfigDecision
}

// deletionDecision is the state of the deletion, with the reason and message of the condition Deleting.
type deletionDecision struct {
	step            plan.DeletionStep
	reason, message string
}

// blockade says what stands in the way; its fields are empty when nothing does.
type blockade struct {
	// reason and message are those of the condition Installed.
	reason, message string
	// conflict is an object of a wanted name that belongs to something else.
	conflict string
}

// requeueAfter returns after which time the next pass begins if no event triggers it before: the shortest of the waits whose end no event
// tells, or 0 when there are none.
func requeueAfter(v *view.View, d decision, o *outcomes) time.Duration {
	var waits []time.Duration
	if d.obstacle.conflict != "" || o.taken() != "" || v.Life == view.Mismatch || v.Workload.OtherCluster != "" ||
		d.obstacle.reason == controlplanev1.NameConflictReason {
		waits = append(waits, conflictRetryInterval)
	}
	if v.Machines.InfraNotAllowed() {
		waits = append(waits, infrastructure.RetryNotAllowed)
	}
	if d.machines.AwaitsTemplate {
		waits = append(waits, templateRetryInterval)
	}
	if wait := d.install.dayOne.RequeueAfter; wait > 0 { // What is left of the wait for workers.
		waits = append(waits, wait)
	}
	if asksAgain(v, d) {
		waits = append(waits, membersRetryInterval)
	}
	// When the next attempt begins by itself, a stray may go, a replacement may be replaced, what is known of the Nodes is not old any more,
	// spec.rollout.after passes, a token is renewed or requested again, and when a host or assisted-service begins to be slow.
	for _, due := range []time.Time{
		d.attempt.RetryAt, plan.StraysFrom(v), d.remedy.RetryAt, d.machines.SurplusAt, d.rollout.RetryAt, d.rollout.AfterAt, d.kubeconfig.at,
		plan.SlowHostsFrom(v), silentFrom(v),
	} {
		if due.After(v.Now) {
			waits = append(waits, due.Sub(v.Now))
		}
	}
	if len(waits) == 0 {
		return 0
	}
	return slices.Min(waits)
}

// asksAgain reports whether the pass has to be repeated because no event tells what it waits for: what etcd answers about its members, or
// whether the cluster has a Machine API. etcd is asked only when a Machine waits to leave it, one gets a verdict, or a stray member is due.
func asksAgain(v *view.View, d decision) bool {
	return len(d.leaving.Waiting) > 0 || len(d.remedy.Verdicts) > 0 || v.Workload.MachineAPIProblem != nil ||
		plan.StraysDue(v) && d.leaving.Stray == nil
}

// silentFrom is when assisted-service is said to be slow to take over the AgentClusterInstall; zero when it has done that.
func silentFrom(v *view.View) time.Time {
	if v.Life.Installed() || v.Install.AgentClusterInstall == nil || v.Install.Phase() != assisted.PhaseUnknown {
		return time.Time{}
	}
	return takenOverBy(v)
}

// decide says what this pass does and why. It is pure.
func decide(v *view.View) decision {
	// Before all else: a host that leaves an installed cluster waits for nothing that has to do with others.
	d := decision{leaving: plan.LeavingOf(v)}
	if v.Life == view.Deleting {
		d.deletion.step, d.deletion.reason, d.deletion.message = plan.LeftoversOf(v).Next()
	}
	// A token is renewed whatever else is missing, and while workers are being deleted.
	if keepsCredential(v) {
		d.kubeconfig = decideCredential(v)
	}
	if v.Life == view.Deleting {
		return d
	}
	// Before all that may have to wait: the cluster of a control plane that was moved here runs, whatever is missing to add hosts to it.
	d.initialize = v.Initializing
	if d.obstacle.reason, d.obstacle.message = waiting(v); d.obstacle.reason != "" {
		return d
	}
	d.machines.OwnTemplate, d.machines.Sync = true, true
	if d.obstacle.conflict = conflict(v); d.obstacle.conflict != "" {
		return d
	}
	if d.machines.Adopt = v.Machines.Orphans; len(d.machines.Adopt) > 0 {
		d.machines.Sync = false
		return d
	}
	if d.attempt = plan.DecideAttempt(v); d.attempt.Stands() {
		d.machines.Sync = !d.attempt.Retrying
		return d
	}
	decideCurrent(v, &d)
	return d
}

// decideCurrent decides about the current attempt and the cluster that comes of it, once nothing stands in the way.
func decideCurrent(v *view.View, d *decision) {
	d.rollout, d.upgrade = plan.DecideRollout(v), plan.DecideUpgrade(v)
	d.machines = plan.DecideMachines(v, d.leaving.Voting, d.rollout.Surge)
	d.remedy = plan.DecideRemediation(v)
	d.upgrade.YieldTo(d.machines, d.rollout, d.remedy)
	d.install = decideInstall(v)
	if len(d.machines.Surplus) > 0 || d.remedy.Delete != nil {
		// Their hosts are bound and ready until the cache shows that they are being deleted: nothing may be fixed or begun with them.
		d.install.dayOne = plan.DayOneStep{Note: d.install.dayOne.Note, Stage: d.install.dayOne.Stage}
	}
	d.install.start = plan.DecideStart(v, d.install.dayOne)
	if !keepsCredential(v) {
		d.kubeconfig = decideKubeconfig(v)
	}
}

// waiting says what has to be there before anything is created.
func waiting(v *view.View) (reason, message string) {
	switch {
	case !v.Cluster.DeletionTimestamp.IsZero():
		// Its workers go first: to count them now would start an installation without them.
		return controlplanev1.ClusterDeletingReason, "The Cluster is being deleted: nothing is created any more"
	case len(v.Install.MissingCRDs) > 0:
		return controlplanev1.WaitingForCRDsReason, "Waiting for CustomResourceDefinitions: " + strings.Join(v.Install.MissingCRDs, ", ")
	case !ptr.Deref(v.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		return controlplanev1.WaitingForClusterInfrastructureReason, "Waiting for the Cluster's infrastructure to be provisioned"
	case !v.Cluster.Spec.ControlPlaneEndpoint.IsValid():
		return controlplanev1.WaitingForClusterInfrastructureReason, "Waiting for Cluster.spec.controlPlaneEndpoint"
	case !v.Life.Installed() && !view.ServesEndpoint(v.ControlPlane.Spec.Install, v.Cluster.Spec.ControlPlaneEndpoint.Host):
		return controlplanev1.InvalidControlPlaneEndpointReason, fmt.Sprintf(
			"Cluster.spec.controlPlaneEndpoint.host is %s, where the cluster will not answer: make it the first of spec.install.apiVIPs (%s) in "+
				"the infrastructure cluster",
			v.Cluster.Spec.ControlPlaneEndpoint.Host,
			strings.Join(v.ControlPlane.Spec.Install.APIVIPs, ", "),
		)
	}
	if reason, message = unwantedMachines(v); reason != "" {
		return reason, message
	}
	switch {
	case v.Kubeconfigs.Namesake != "" && !v.Life.Installed() && v.Install.AgentClusterInstall == nil:
		return controlplanev1.NameConflictReason, v.Kubeconfigs.Namesake
	case !v.Life.Installed() && (v.Install.AgentClusterInstall == nil || plan.Changeable(v)):
		message = render.NetworkProblem(v.ControlPlane.Spec, v.Cluster)
	}
	if message == "" {
		return "", ""
	}
	return controlplanev1.InvalidNetworksReason, message
}

// unwantedMachines says which Machines of the Cluster somebody has to look at before anything is changed.
func unwantedMachines(v *view.View) (reason, message string) {
	if len(v.Machines.Foreign) > 0 {
		return controlplanev1.MixedOwnershipReason, fmt.Sprintf(
			"Control-plane Machines of something else belong to the Cluster (%s): delete them, or remove their label %s; nothing is changed "+
				"until then",
			strings.Join(v.Machines.Foreign, ", "),
			clusterv1.MachineControlPlaneLabel,
		)
	}
	if names := plan.Unrecorded(v); len(names) > 0 {
		return controlplanev1.UnrecordedClusterReason, fmt.Sprintf(
			"Machines have Nodes (%s), and the annotation %s does not tell of which cluster: restore it, or delete the Cluster; nothing is changed "+
				"until then",
			strings.Join(names, ", "),
			controlplanev1.InstalledClusterAnnotation,
		)
	}
	return "", ""
}

// conflict finds an object that has a name the control plane needs and belongs to something else. It is never touched (DESIGN D13).
func conflict(v *view.View) string {
	switch {
	case v.Install.ClusterDeployment != nil && !view.OwnedBy(v.Install.ClusterDeployment, v.ControlPlane):
		return "ClusterDeployment " + v.Install.ClusterDeployment.Name
	case v.Install.AgentClusterInstall != nil && !view.OwnedBy(v.Install.AgentClusterInstall, v.ControlPlane):
		return "AgentClusterInstall " + v.Install.AgentClusterInstall.Name
	case v.Install.ImageSet != nil && !ownsImageSet(v) && !view.Inherited(v.Install.ImageSet, v.ControlPlane) &&
		v.ControlPlane.Spec.Release.ImageSetRef.Name == "":
		return "ClusterImageSet " + v.Install.ImageSet.Name
	default:
		return ""
	}
}

func ownsImageSet(v *view.View) bool { return view.OwnedBy(v.Install.ImageSet, v.ControlPlane) }
