// SPDX-License-Identifier: Apache-2.0

package assisted

import hivev1 "github.com/openshift/hive/apis/hive/v1"

// failureScenarios are installations that go wrong.
func failureScenarios() []scenario {
	return []scenario{
		{
			name:       "preparation fails, hosts go silent, the installation fails",
			files:      []string{"image-preparation-failure-loop.log"},
			hosts:      map[string]string{"a9373d83": "x0", "7f26bfa0": "x1", "c4e88cac": "x2"},
			run:        runPreparationFailures,
			missing:    with(flapping, anyRole, countdown),
			additional: with(flapping, noValidated, anyRole, countdown, discovering, waiting),
		},
		{
			name:  "delete the ClusterDeployment of a failed installation",
			files: []string{"cd-delete-while-installing.log"},
			hosts: map[string]string{"145bc8db": "x0", "8679dc86": "x1", "d6b1bbe1": "x2"},
			run:   runDeleteFailed,
			additional: []difference{
				noValidated,
				{object: "agent/", reason: "the recording has no Agent fields; that they go is in ASSISTED 1.3"},
				{object: "aci/x1", reason: "the recording begins when the installation has failed"},
				{object: "infraenv/", field: "deleting", reason: "shorter than the recording's period"},
			},
		},
	}
}

func runPreparationFailures(d *driver) {
	d.cluster("c2", 3, 0, false)
	// As often as it was recorded: on a fast machine the hosts would report their hardware before the states alternate again.
	d.waitCluster("c2", clusterPendingInput)
	d.waitCluster("c2", clusterInsufficient)
	d.waitCluster("c2", clusterPendingInput)
	d.infraEnv("c2ie", "c2")
	d.start("c2ie", "x1", "x0")
	d.wait(hostInsufficient, "x0", "x1")
	d.sim.PowerOff(d.key("x0"))
	d.sim.PowerOff(d.key("x1"))
	d.wait(hostDisconnected, "x0", "x1")
	d.start("c2ie", "x2")
	d.restart("x1", "x0")
	d.sim.Faults().PreparationFails(d.key("x0"), 3)
	d.waitCluster("c2", clusterReady)
	for _, host := range []string{"x1", "x2", "x0"} {
		d.ask(host, roleMaster, "c2", "")
	}
	d.eventually("three failed preparations", func() bool { return d.preparationsLeft("x0") == 0 })
	d.sim.Faults().StageHang(d.key("x0"), hostPreparing)
	d.wait(hostPreparingSuccessful, "x1", "x2")
	d.sim.PowerOff(d.key("x1"))
	d.sim.PowerOff(d.key("x2"))
	d.wait(hostDisconnected, "x1", "x2")
	d.wait(hostKnown, "x0")
	d.sim.Faults().StageHang(d.key("x0"), "")
	d.sim.Faults().InstallFails(d.key("x0"), StageWritingImage, "fake failure")
	d.sim.Faults().StageHang(d.key("x0"), StageInstalling)
	d.sim.Faults().StageHang(d.key("x1"), StageCopyingRegistry)
	d.sim.Faults().StageHang(d.key("x2"), StageCopyingRegistry)
	d.sim.Faults().HostValidationFails(d.key("x1"), "hold", "not before all have restarted")
	d.restart("x1", "x2", "x0")
	d.sim.Faults().HostValidationFails(d.key("x1"), "hold", "")
	for host, stage := range map[string]string{"x0": StageInstalling, "x1": StageCopyingRegistry, "x2": StageCopyingRegistry} {
		d.eventually("host "+host+" to be in stage "+stage, func() bool { return d.agent(d.agents[host]).Status.Progress.CurrentStage == stage })
	}
	d.sim.Faults().StageHang(d.key("x0"), "")
	d.waitCluster("c2", clusterError)
	d.wait(hostError, "x0", "x1", "x2")
}

func runDeleteFailed(d *driver) {
	d.cluster("x1", 3, 0, false)
	d.infraEnv("x1ie", "x1")
	d.sim.Faults().InstallFails(d.key("x0"), StageInstalling, "fake failure")
	d.start("x1ie", "x0", "x1", "x2")
	for _, host := range []string{"x0", "x1", "x2"} {
		d.ask(host, roleMaster, "x1", "")
	}
	d.waitCluster("x1", clusterError)
	d.deleteCluster("x1")
	d.eventually("InfraEnv x1ie to miss its cluster", func() bool { return d.imageReason("x1ie") == "MissingClusterDeployment" })
	must(d.t, d.client.Delete(d.ctx, d.infraEnvNamed("x1ie")))
	d.eventually("InfraEnv x1ie to be gone", func() bool { return d.infraEnvNamed("x1ie").UID == "" })
}

// restart boots hosts from the discovery image, one after the other.
func (d *driver) restart(hosts ...string) {
	d.t.Helper()
	for _, host := range hosts {
		d.sim.Reboot(d.key(host))
		d.wait(hostDiscovering, host)
	}
}

func (d *driver) preparationsLeft(host string) int {
	b := d.sim.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults.of(d.key(host)).prepareFails
}

// deleteCluster deletes a ClusterDeployment and waits until it and its AgentClusterInstall are gone.
func (d *driver) deleteCluster(name string) {
	d.t.Helper()
	must(d.t, d.client.Delete(d.ctx, &hivev1.ClusterDeployment{ObjectMeta: d.meta(name)}))
	d.eventually("ClusterDeployment "+name+" to be gone", func() bool {
		return d.client.Get(d.ctx, d.key(name), &hivev1.ClusterDeployment{}) != nil && d.aci(name).UID == ""
	})
}
