// SPDX-License-Identifier: Apache-2.0

package host

import (
	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/disk"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// chooseDisk applies the root device hints to what an unbound Agent reports, so that a host without the right disk is never bound. The
// verdict is empty when there are no hints.
func chooseDisk(s *scope, agent *assisted.Agent) disk.Verdict {
	hints := disk.HintsFor(s.config, s.host)
	if !hints.Given() {
		return disk.Verdict{}
	}
	return disk.Choose(agent.Name, agent.Status.Inventory.Disks, hints)
}

// recordDisk has the config record the choice for its bound host: from then on admission refuses other hints. An Agent that was bound
// without hints says nothing of a disk.
func recordDisk(s *scope, d *joining, id string) {
	if id == "" {
		id = bootstrapv1.InstallationDiskDefault
	}
	if s.config.Annotations[bootstrapv1.InstallationDiskAnnotation] != id {
		d.disk = id
	}
}

// decideDisk gives a bound Agent the disk that was chosen when it was bound, together with its approval: an approved day-2 host begins to
// install by itself, and an unapproved one keeps the first installation from beginning (docs/adr/0003-installation-disk.md). owed is false
// when nothing is to be done or waited for.
func decideDisk(d *joining, agent *assisted.Agent) (_ fact.Fact, owed bool) {
	chosen := agent.Annotations[bootstrapv1.InstallationDiskAnnotation]
	switch {
	case !agent.DiskOwed():
		return fact.Fact{}, false
	case !agent.TakesDisk():
		return fact.Fact{}, false // What keeps the host from reporting is the better message.
	case !disk.Installable(agent.Status.Inventory.Disks, chosen):
		return fact.Waiting(
			bootstrapv1.InstallationDiskNotFoundReason,
			"Agent %s was bound to be installed on %s, which it does not report as a disk that can be installed on any more: repair the disk, or "+
				"delete the Machine to choose anew",
			agent.Name, chosen,
		), true
	}
	d.approve = agent
	return bindingFact(agent, agent.Spec.ClusterDeploymentName.Name), true
}
