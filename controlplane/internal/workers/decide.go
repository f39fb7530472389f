// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment/mdutil"
	"sigs.k8s.io/cluster-api/util/annotations"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// decision is what a pass writes.
type decision struct {
	deployments []deploymentVersion
	machines    []machineVersion
	sets        []setVersion
}

// machineVersion is the version that a Machine gets, which its Node runs.
type machineVersion struct {
	machine *clusterv1.Machine
	version string
}

// setVersion is the version that the template of a MachineSet gets, which all of its Machines have.
type setVersion struct {
	deployment *clusterv1.MachineDeployment
	set        *clusterv1.MachineSet
	version    string
}

// decide lets those MachineDeployments of a Cluster follow that may. It is pure. The MachineSets of a MachineDeployment that gets another
// version are compared with it in a later pass.
func decide(cluster *clusterv1.Cluster, groups []group) decision {
	var d decision
	for _, g := range groups {
		if !follows(g.deployment) || d.decideDeployment(cluster, g) {
			continue
		}
		for _, s := range g.sets {
			d.decideSet(g.deployment, s)
		}
	}
	return d
}

// follows reports whether a MachineDeployment may follow. With another strategy than OnDelete, Cluster API replaces Machines as soon as the
// version changes: nobody can be there before it, and whoever chose that strategy has asked for it.
func follows(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType &&
		!ptr.Deref(deployment.Spec.Paused, false) && mayChange(deployment)
}

// mayChange reports whether an object is neither being deleted nor paused by itself.
func mayChange(o client.Object) bool {
	return o.GetDeletionTimestamp().IsZero() && !annotations.HasPaused(o)
}

// decideSet decides about a MachineSet and its Machines: the Machines first, and the MachineSet in a later pass, when all of them were seen
// with the version.
func (d *decision) decideSet(deployment *clusterv1.MachineDeployment, s set) {
	if !mayChange(s.set) {
		return
	}
	version := deployment.Spec.Template.Spec.Version
	arrived, remaining := 0, 0
	for _, m := range s.machines {
		switch {
		case !m.DeletionTimestamp.IsZero():
			// Its Node goes, and nobody waits for it.
		case view.KubeletVersion(m) == version && m.Spec.Version == version:
			arrived++
		default:
			remaining++
			if view.KubeletVersion(m) == version && isUpwards(m.Spec.Version, version) && mayChange(m) {
				d.machines = append(d.machines, machineVersion{machine: m, version: version})
			}
		}
	}
	// A MachineSet without Machines has nothing to keep: Cluster API deletes it.
	if arrived > 0 && remaining == 0 && isUpwards(s.set.Spec.Template.Spec.Version, version) && differsInVersionOnly(s.set, deployment) {
		d.sets = append(d.sets, setVersion{deployment: deployment, set: s.set, version: version})
	}
}

// isUpwards reports whether a version is older than another one, or differs from it in build metadata alone, which has no order. What is no
// version is never replaced.
func isUpwards(from, to string) bool { return from != to && compares(from, to, semver.Version.LTE) }

// compares reports whether an order holds between two versions, of which neither may be something else.
func compares(a, b string, order func(a, b semver.Version) bool) bool {
	first, err := semver.ParseTolerant(a)
	if err != nil {
		return false
	}
	second, err := semver.ParseTolerant(b)
	return err == nil && order(first, second)
}

// differsInVersionOnly asks Cluster API whether the MachineSet would be the MachineDeployment's current one with its version.
func differsInVersionOnly(machineSet *clusterv1.MachineSet, deployment *clusterv1.MachineDeployment) bool {
	template := machineSet.Spec.Template.DeepCopy()
	template.Spec.Version = deployment.Spec.Template.Spec.Version
	upToDate, _ := mdutil.MachineTemplateUpToDate(template, &deployment.Spec.Template)
	return upToDate
}
