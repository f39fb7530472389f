// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// installProgress is what is said of an installation in a phase: the reason of the condition Installed, and status.install.phase.
var installProgress = map[assisted.Phase]struct{ reason, phase, message string }{
	assisted.PhaseUnknown:    {controlplanev1.WaitingForHostsReason, controlplanev1.InstallPhaseWaitingForHosts, ""},
	assisted.PhaseWaiting:    {controlplanev1.WaitingForHostsReason, controlplanev1.InstallPhaseWaitingForHosts, ""},
	assisted.PhasePreparing:  {controlplanev1.PreparingReason, controlplanev1.InstallPhasePreparing, "Preparing the installation"},
	assisted.PhaseInstalling: {controlplanev1.InstallingReason, controlplanev1.InstallPhaseInstalling, "Installing hosts"},
	assisted.PhaseFinalizing: {
		controlplanev1.FinalizingReason, controlplanev1.InstallPhaseFinalizing, "Installing the operators of the cluster",
	},
	assisted.PhaseCompleted: {controlplanev1.InstalledReason, controlplanev1.InstallPhaseCompleted, ""},
	assisted.PhaseFailed:    {controlplanev1.InstallationFailedReason, controlplanev1.InstallPhaseFailed, ""},
}

// takeOverPatience is how long assisted-service may take until it says something of a new AgentClusterInstall.
const takeOverPatience = time.Minute

// setInstallStatus sets status.install and the condition Installed.
func setInstallStatus(v *view.View, d decision, o *outcomes) {
	cp := v.ControlPlane
	reason, message := installed(v, d, o)
	if len(d.machines.Adopt) > 0 && reason != controlplanev1.InstallRefusedReason && conditions.Has(cp, controlplanev1.InstalledCondition) {
		return // Nothing was decided about the installation: the pass after the adoption does that.
	}
	switch {
	case (v.Install.AgentClusterInstall != nil || o.begun) && !d.attempt.Retrying:
		phase := v.Install.Phase()
		if reason == controlplanev1.PreparationFailedReason {
			phase = assisted.PhaseWaiting // In every round of assisted-service, so that spec.install may be changed at any time.
		}
		setProgress(&cp.Status.Install, v.Install.AgentClusterInstall, phase)
		setFinalizing(v)
	case !v.Initialized():
		cp.Status.Install = controlplanev1.InstallStatus{}
	}
	if attempt, err := strconv.ParseInt(view.Attempt(cp), 10, 32); err == nil && attempt > 0 {
		cp.Status.Install.Attempt = new(int32(attempt))
	}
	cp.Status.Install.NextRetryTime = metav1.NewTime(d.attempt.RetryAt)
	condition := metav1.Condition{Type: controlplanev1.InstalledCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if reason == controlplanev1.InstalledReason {
		condition.Status = metav1.ConditionTrue
	}
	bounded.SetCondition(cp, condition)
}

// setProgress writes the phase of the installation, and how far it was when that phase began: the service counts every few seconds.
func setProgress(status *controlplanev1.InstallStatus, install *hiveext.AgentClusterInstall, phase assisted.Phase) {
	name, percentage := installProgress[phase].phase, int32(0)
	switch {
	case phase == assisted.PhaseCompleted:
		percentage = 100 // The service has seen no progress of a cluster that was imported.
	case install != nil:
		percentage = int32(min(max(install.Status.Progress.TotalPercentage, 0), 100))
	}
	if status.Phase == name && status.ProgressPercentage != nil {
		return
	}
	status.Phase, status.ProgressPercentage = name, &percentage
}

// setFinalizing remembers that the attempt has reached the phase Finalizing, in the write that tells of that phase, so that it is known
// when the attempt fails. It comes before the number of the attempt is set: what status remembers is about the attempt whose number it has.
func setFinalizing(v *view.View) {
	status, reached := &v.ControlPlane.Status.Install, plan.ReachedFinalizing(v)
	switch {
	case !reached:
		status.FinalizingTime = metav1.Time{}
	case status.FinalizingTime.IsZero():
		status.FinalizingTime = metav1.NewTime(v.Now)
	}
}

// installed returns the reason and the message of the condition Installed: what stands in the way first, then how far it is.
func installed(v *view.View, d decision, o *outcomes) (reason, message string) {
	if v.Initialized() {
		return controlplanev1.InstalledReason, ""
	}
	if refused := notAdopted(d, o); refused != "" {
		return controlplanev1.InstallRefusedReason, refused
	}
	if v.Record != nil && (v.InstalledElsewhere() || v.Install.AgentClusterInstall == nil) {
		return importing(v, o)
	}
	if reason, message := obstacle(v, d, o); reason != "" {
		return reason, message
	}
	if reason, message := betweenAttempts(v, d); reason != "" {
		return reason, message
	}
	switch {
	case v.Install.AgentClusterInstall == nil && o.begun:
		return controlplanev1.WaitingForHostsReason, plan.WantedHosts(v)
	case v.Install.AgentClusterInstall == nil:
		return controlplanev1.WaitingForHostsReason, "Creating ClusterDeployment and AgentClusterInstall"
	}
	phase := v.Install.Phase()
	if message := preparationFailure(v, phase); message != "" {
		return controlplanev1.PreparationFailedReason, message
	}
	switch phase {
	case assisted.PhaseWaiting, assisted.PhaseUnknown:
		return waitingForHosts(v, d)
	case assisted.PhaseFailed:
		return failedReason(v, d.attempt.Retry)
	case assisted.PhaseCompleted:
		return controlplanev1.InstalledReason, "Waiting for the API of the cluster to answer"
	default:
		// Without the percentage, for which status would be written every few seconds.
		return installProgress[phase].reason, withHostProblems(v, installProgress[phase].message)
	}
}

// importing says why a cluster that was installed before its control plane came here is not known to be that cluster yet.
func importing(v *view.View, o *outcomes) (reason, message string) {
	name := secret.Name(v.ClusterName, secret.Kubeconfig)
	if v.Life == view.Mismatch {
		return controlplanev1.ClusterMismatchReason, fmt.Sprintf(
			"Secret %s leads to cluster %s, but cluster %q was installed, says annotation %s: correct the Secret; nothing is installed meanwhile",
			name, v.Workload.ClusterID, v.Record.ClusterID, controlplanev1.InstalledClusterAnnotation)
	}
	if v.Kubeconfigs.Cluster == nil && !o.published {
		return controlplanev1.ImportingReason, fmt.Sprintf(
			"Cluster %s was installed and Secret %s, which leads to it, does not exist: restore it; nothing is installed meanwhile",
			v.Record.ClusterID, name,
		)
	}
	return controlplanev1.ImportingReason, fmt.Sprintf(
		"Waiting for the API of the installed cluster %s to answer through Secret %s; nothing is installed meanwhile", v.Record.ClusterID, name)
}

// obstacle returns what keeps the control plane from being looked after, as a reason of the condition Installed; nothing when nothing does.
func obstacle(v *view.View, d decision, o *outcomes) (reason, message string) {
	if v.Life == view.Mismatch {
		return importing(v, o)
	}
	if d.obstacle.reason != "" {
		return d.obstacle.reason, d.obstacle.message
	}
	if refused := cmp.Or(o.attempt.refused(), o.install.refused(), o.records.refused()); refused != "" {
		return controlplanev1.InstallRefusedReason, refused
	}
	if conflict := cmp.Or(d.obstacle.conflict, o.taken()); conflict != "" {
		return controlplanev1.NameConflictReason, conflict + " exists and belongs to something else: delete or rename it, or rename the " +
			"control plane"
	}
	return "", ""
}

// notAdopted returns the API server's refusal of a patch that adopts a Machine; it is empty when no such patch was refused.
func notAdopted(d decision, o *outcomes) string {
	if len(d.machines.Adopt) == 0 {
		return ""
	}
	return o.machines.refused()
}

// waitingForHosts tells what a held installation waits for. Problems of the cluster are told once no host is being bound: until then the
// service reports them for minutes, and they mean nothing (DESIGN D8).
func waitingForHosts(v *view.View, d decision) (reason, message string) {
	synced := assisted.ClusterCondition(v.Install.AgentClusterInstall, hiveext.ClusterSpecSyncedCondition)
	failing := assisted.FailingChecks(v.Install.AgentClusterInstall.Status.ValidationsInfo)
	validated := assisted.ClusterCondition(v.Install.AgentClusterInstall, hiveext.ClusterValidatedCondition)
	settled := hostsSettled(v)
	switch {
	case settled && synced != nil && synced.Status == corev1.ConditionFalse:
		return controlplanev1.SpecNotSyncedReason, synced.Message
	case settled && v.Install.Closed() && validated != nil && validated.Status == corev1.ConditionFalse:
		return controlplanev1.ValidationsFailingReason, cmp.Or(strings.Join(failing, "; "), validated.Message)
	default:
		reason, unmet := controlplanev1.WaitingForHostsReason, unmetRequirements(v)
		switch {
		case d.install.dayOne.Held:
			reason = controlplanev1.InstallationOnHoldReason
		case unmet != "":
			reason = controlplanev1.RequirementsNotMetReason
		}
		stage := cmp.Or(d.install.dayOne.Stage, plan.WantedHosts(v))
		if v.Install.Phase() == assisted.PhaseUnknown && !v.Now.Before(takenOverBy(v)) {
			stage = "Waiting for assisted-service to take over the AgentClusterInstall"
		}
		return reason, withHostProblems(v, cmp.Or(unmet, stage))
	}
}

// takenOverBy is until when assisted-service has time to say something of the AgentClusterInstall.
func takenOverBy(v *view.View) time.Time {
	return v.Install.AgentClusterInstall.CreationTimestamp.Add(takeOverPatience)
}

// maxProblems bounds how many Machines a message names.
const maxProblems = 3

// withHostProblems is a message about the installation, followed by what is wrong with its hosts.
func withHostProblems(v *view.View, message string) string {
	return strings.Join(append([]string{message}, hostProblems(v)...), "; ")
}

// hostProblems says which hosts keep the installation from beginning or from ending, and why. clusterctl describe shows several Machines
// that are not ready as one line without their messages, so the control plane has to say it. Hosts that may only be slow to boot are named
// once half of their time to register is over, and come last.
func hostProblems(v *view.View) []string {
	machines := append(v.Machines.Owned.UnsortedList(), v.Machines.Workers...)
	slices.SortFunc(machines, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	var problems, slow []string
	for _, m := range machines {
		config := v.Machines.Configs[m.Name]
		problem := plan.HostProblem(config)
		switch {
		case problem == nil || v.Now.Before(plan.SlowFrom(v, config)):
		case problem.Reason == bootstrapv1.WaitingForAgentReason:
			slow = append(slow, fmt.Sprintf("Machine %s: %s", m.Name, problem.Message))
		default:
			problems = append(problems, fmt.Sprintf("Machine %s: %s", m.Name, problem.Message))
		}
	}
	problems = append(problems, slow...)
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more Machines", len(problems)-maxProblems))
	}
	return problems
}

// hostsSettled reports whether no bound host is on its way to being ready.
func hostsSettled(v *view.View) bool {
	return !slices.ContainsFunc(v.BoundAgents(), func(a *assisted.Agent) bool { return !a.ReadyToInstall() })
}
