// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// installDecision is about the objects of hive and assisted-service.
type installDecision struct {
	// record is the value to write to InstalledClusterAnnotation; empty if it is up to date.
	record string
	// start is the value to write to InstallationStartedAnnotation, "" to remove it; nil if it is up to date.
	start *string
	// create: the objects of the installation are missing. restoreImageSet: the ClusterImageSet that they refer to is.
	create, restoreImageSet bool
	// importCluster: the installed cluster is not known to assisted-service, and is made known. markInstalled: its ClusterDeployment has to
	// say first that it is installed.
	importCluster, markInstalled bool
	// update brings the AgentClusterInstall in line with a control plane that has changed; nil when it is.
	update *render.InstallUpdate
	// registration is a change of the AgentClusterInstall's annotations by which hosts get another time to register; nil when there is none.
	registration map[string]any
	// dayOne is the next step of the first installation.
	dayOne plan.DayOneStep
}

// decideInstall decides about the objects of hive and assisted-service while the current attempt goes on.
func decideInstall(v *view.View) installDecision {
	objects := v.Install
	d := installDecision{record: plan.RecordToWrite(v)}
	d.create = !v.Life.Installed() && (objects.ClusterDeployment == nil || objects.AgentClusterInstall == nil)
	d.restoreImageSet = objects.ClusterDeployment != nil && objects.AgentClusterInstall != nil && objects.ImageSet == nil &&
		v.ControlPlane.Spec.Release.ImageSetRef.Name == ""
	d.importCluster, d.markInstalled = plan.DecideImport(v)
	if objects.AgentClusterInstall != nil && objects.AgentClusterInstall.DeletionTimestamp.IsZero() {
		d.registration = render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster}.RegistrationTimeout(objects.AgentClusterInstall)
	}
	d.update, d.dayOne = installation(v)
	return d
}

// installation decides how the AgentClusterInstall is brought forward: what has changed in the control plane comes before the next step of
// day 1, so that the installation never begins with what was asked for before. One that is not held any more is held again first: the
// service may begin at any moment, and then refuses the patch.
func installation(v *view.View) (*render.InstallUpdate, plan.DayOneStep) {
	step := plan.DecideDayOne(v)
	if !plan.Changeable(v) {
		return nil, step
	}
	wanted := render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster, Workers: v.Machines.WantedWorkers}
	update, err := wanted.Update(v.Install.AgentClusterInstall)
	if err != nil || update == nil {
		return nil, step // An error is one of the webhook's, which a control plane older than the webhook's rules may not have met.
	}
	const note = "spec.install has changed"
	if !v.Install.AgentClusterInstall.Spec.HoldInstallation {
		return nil, plan.DayOneStep{Action: plan.DayOneReopen, Note: note, Stage: note}
	}
	return update, plan.DayOneStep{Note: note, Stage: plan.WantedHosts(v)}
}
