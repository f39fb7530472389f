// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/metrics"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	definitions "github.com/capi-openshift/agent-providers/internal/metrics"
)

// countStatus counts what a status tells that this pass alone has written.
func countStatus(v *view.View, before, after *controlplanev1.OpenshiftAssistedControlPlane) {
	metrics.Count(metrics.Written{Before: before, After: after, Cause: failureCause(v), Version: v.Workload.Version, Now: v.Now})
}

// failureCause is why the installation has failed, if it has. The AgentClusterInstall may report the failure of a host before the
// host's Agent does: the service writes one after the other, and the manager watches each of them apart.
func failureCause(v *view.View) string {
	ownFault := func(a *assisted.Agent) bool { return a.Failed() && victim(a) == 0 }
	switch install := v.Install.AgentClusterInstall; {
	case slices.ContainsFunc(v.BoundAgents(), ownFault):
		return definitions.InstallReasonHost
	case install == nil:
		return definitions.InstallReasonCluster
	case assisted.FailedByHosts(install):
		return definitions.InstallReasonHost
	default:
		if failed := assisted.ClusterCondition(install, hiveext.ClusterFailedCondition); failed == nil || failed.Status != corev1.ConditionTrue {
			return definitions.InstallReasonCancelled
		}
		return definitions.InstallReasonCluster
	}
}

// countRecords counts what was recorded on the control plane just now.
func countRecords(v *view.View, d decision, retries bool) {
	if d.install.record != "" && v.Record == nil && !v.Initialized() {
		metrics.InstallCompleted(v.ControlPlane, v.Install.AgentClusterInstall, v.Now)
	}
	if retries {
		metrics.InstallRetried(v.ControlPlane, retryReason(d.attempt))
	}
	if d.remedy.Record != nil {
		metrics.RemediationRecorded(d.remedy.Record.RetryCount)
	}
}

func retryReason(d plan.AttemptDecision) string {
	switch {
	case d.Asked:
		return definitions.InstallReasonAsked
	case d.Lost != "":
		return definitions.InstallReasonLost
	}
	return definitions.InstallReasonAutomatic
}
