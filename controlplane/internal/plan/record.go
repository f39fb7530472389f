// SPDX-License-Identifier: Apache-2.0

package plan

import (
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// RecordToWrite is the value to write to the annotation InstalledClusterAnnotation. It is empty when the annotation has that value, and
// while no cluster is installed. If the user has changed the number of the attempt of an initialized control plane, the record gets the new
// number: the cluster stays the same.
func RecordToWrite(v *view.View) string {
	if v.Install.Phase() != assisted.PhaseCompleted || v.Install.AgentClusterInstall.Spec.ClusterMetadata == nil {
		return ""
	}
	if !v.Initialized() && view.AttemptOf(v.Install.AgentClusterInstall) != view.Attempt(v.ControlPlane) {
		return ""
	}
	record := view.RecordOf(v.ControlPlane, *v.Install.AgentClusterInstall.Spec.ClusterMetadata)
	if record.ClusterID == "" || v.Record != nil && record == *v.Record {
		return ""
	}
	return record.String()
}

// DecideImport decides whether the installed cluster is to be made known to assisted-service, which is when its AgentClusterInstall is
// missing and its API has said which cluster it is. One that vanished between the end of the installation and the first answer of the API
// is no new attempt (compare AttemptDecision.Lost): the cluster is recorded, its kubeconfig is published, and hosts run it. Made anew as it
// was, the AgentClusterInstall would start an installation of hosts that are Nodes already, which can never end. A ClusterDeployment of
// that installation is first changed to one of an installed cluster, and the AgentClusterInstall follows once the cache shows that.
func DecideImport(v *view.View) (importCluster, markInstalled bool) {
	if !v.Verified() || v.Install.AgentClusterInstall != nil ||
		v.Install.ClusterDeployment != nil && !v.Install.ClusterDeployment.DeletionTimestamp.IsZero() {
		return false, false
	}
	return v.InstalledElsewhere(), !v.InstalledElsewhere()
}

// DecideStart has the control plane remember that the installation begins before it does, and that it has not after all when day 1 is
// opened again. It returns the value to write to InstallationStartedAnnotation, "" to remove it and nil if it is up to date. The hold is
// kept until it is written: otherwise a crash might leave an installation that nobody knows to have begun.
func DecideStart(v *view.View, step DayOneStep) *string {
	if v.Life.Installed() || v.Install.AgentClusterInstall == nil || v.Install.ClusterDeployment == nil {
		return nil
	}
	starting, begun := step.Action == DayOneStart, v.Install.Closed() && !v.Install.AgentClusterInstall.Spec.HoldInstallation
	known := v.Started.Attempt == view.Attempt(v.ControlPlane)
	switch {
	case starting, begun && !known:
		names, _ := assisted.DayOneAgents(v.Install.AgentClusterInstall)
		if starting {
			names = step.Agents
		}
		var claims []string
		for _, w := range workersOf(v, names) {
			claims = append(claims, assisted.Claim(w))
		}
		value := view.StartedNow(v.ControlPlane, claims).String()
		if value == v.ControlPlane.Annotations[controlplanev1.InstallationStartedAnnotation] {
			return nil
		}
		return &value
	case known && !begun && v.Install.Phase() == assisted.PhaseWaiting:
		return new("")
	}
	return nil
}
