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
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// clusterFailedToInstall is how the service describes a host that failed only because another one did (ASSISTED 3.11).
const clusterFailedToInstall = "Host is part of a cluster that failed to install"

// annotate says how the user begins the next attempt.
const annotate = "set annotation " + controlplanev1.RetryInstallationAnnotation + " on the control plane; its hosts are power-cycled"

// failedReasons are those of the condition Installed while an attempt has ended and no other has begun.
var failedReasons = []string{
	controlplanev1.InstallationFailedReason, controlplanev1.RetryWaitingReason, controlplanev1.RetriesExhaustedReason,
}

// attemptOf is the number of an attempt, followed by how many there may be before the user has to ask for one.
func attemptOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane, attempt string) string {
	retries := int(ptr.Deref(controlPlane.Spec.Install.Retries, 0))
	if n, err := strconv.Atoi(attempt); err != nil || retries == 0 || n > retries+1 {
		return attempt
	}
	return fmt.Sprintf("%s of %d", attempt, retries+1)
}

// betweenAttempts says how far the end of one attempt and the beginning of the next are; the reason is empty while an attempt goes on.
func betweenAttempts(v *view.View, d decision) (reason, message string) {
	attempt := view.Attempt(v.ControlPlane)
	switch {
	case d.attempt.Lost != "" && !d.attempt.Start:
		return lostReason(v, d)
	case d.attempt.Lost != "":
		return controlplanev1.RetryingReason, fmt.Sprintf(
			"%s vanished during attempt %s of the installation: the next attempt begins", d.attempt.Lost, attempt,
		)
	case d.attempt.Start:
		return controlplanev1.RetryingReason, fmt.Sprintf("Attempt %s of the installation failed: the next attempt begins", attempt)
	case d.attempt.Retrying:
		return controlplanev1.RetryingReason, fmt.Sprintf("Removing what is left of the failed installation before attempt %s begins", attempt)
	default:
		return "", ""
	}
}

// lostReason says when the next attempt begins after objects have vanished more than once.
func lostReason(v *view.View, d decision) (reason, message string) {
	vanished := fmt.Sprintf("%s vanished during attempt %s of the installation", d.attempt.Lost, view.Attempt(v.ControlPlane))
	if !d.attempt.RetryAt.IsZero() {
		return controlplanev1.RetryWaitingReason, fmt.Sprintf(
			"%s: the next attempt begins at %s", vanished, d.attempt.RetryAt.UTC().Format(time.RFC3339),
		)
	}
	if d.attempt.Repairable {
		return controlplanev1.InstallationFailedReason, fmt.Sprintf(
			"%s after that had failed: no other begins by itself, because the cluster may be repairable, and may hold data. To install again, %s",
			vanished, annotate,
		)
	}
	return controlplanev1.RetriesExhaustedReason, fmt.Sprintf(
		"%s, and so it was in the attempts before: find out who deletes it. To install again, %s", vanished, annotate)
}

// failedReason says why the attempt has failed, and when the next one begins, or why none does by itself.
func failedReason(v *view.View, retry plan.RetryDecision) (reason, message string) {
	cause, attempt := failure(v), attemptOf(v.ControlPlane, view.Attempt(v.ControlPlane))
	switch {
	case retry.Exhausted:
		return controlplanev1.RetriesExhaustedReason, fmt.Sprintf(
			"%s (attempt %s, and spec.install.retries allows no further one). To install again, %s", cause, attempt, annotate,
		)
	case retry.Blocked != "":
		return controlplanev1.InstallationFailedReason, fmt.Sprintf(
			"%s (attempt %s; no other begins by itself: %s). To install again, %s", cause, attempt, retry.Blocked, annotate,
		)
	case !retry.At.IsZero():
		return controlplanev1.RetryWaitingReason, fmt.Sprintf(
			"%s (attempt %s; the next begins at %s). To install again before, %s", cause, attempt, retry.At.UTC().Format(time.RFC3339), annotate,
		)
	default:
		return controlplanev1.InstallationFailedReason, fmt.Sprintf("%s. To install again, %s", cause, annotate)
	}
}

// failure names the first host that failed by itself, with its reason, without a full stop. When none did, it says why the cluster failed.
func failure(v *view.View) string {
	var failed []*assisted.Agent
	for _, a := range v.BoundAgents() {
		if a.Failed() {
			failed = append(failed, a)
		}
	}
	slices.SortStableFunc(failed, func(a, b *assisted.Agent) int { return cmp.Compare(victim(a), victim(b)) })
	var text string
	if len(failed) > 0 && victim(failed[0]) == 0 {
		a := failed[0]
		text = fmt.Sprintf("The host of Machine %s (Agent %s) failed: %s", view.MachineOf(a), a.Name, a.Status.DebugInfo.StateInfo)
	} else if c := stopped(v.Install.AgentClusterInstall); c != nil {
		text = c.Message
	}
	return strings.TrimSuffix(text, ".")
}

// stopped is the condition that says why the installation ended: it failed, or somebody cancelled it.
func stopped(install *hiveext.AgentClusterInstall) *hivev1.ClusterInstallCondition {
	failed := assisted.ClusterCondition(install, hiveext.ClusterFailedCondition)
	if failed != nil && failed.Status == corev1.ConditionTrue {
		return failed
	}
	return assisted.ClusterCondition(install, hiveext.ClusterStoppedCondition)
}

// victim is 1 for a host that failed only because another one did, and 0 otherwise.
func victim(a *assisted.Agent) int {
	if strings.Contains(a.Status.DebugInfo.StateInfo, clusterFailedToInstall) {
		return 1
	}
	return 0
}
