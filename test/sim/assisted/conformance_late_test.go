// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// lateScenarios are those in which hosts are bound after they have registered: one long run of three clusters, as
// late-marks.log tells it.
func lateScenarios() []scenario {
	return []scenario{{
		name: "late binding",
		files: []string{
			"late-1a-hold-bind.log", "late-2-surplus-disconnect-unbind.log", "late-1b-unhold-install-and-4-bind-refused.log",
			"late-4-retry-and-day2.log", "late-6-delete-unbound-5c-day2.log", "late-5a-delete-cd-while-installing.log",
			"late-5b-delete-cd-after.log", "late-5d-and-7-osimage.log", "late-real-poll-intervals.log",
			"late-R-refused-bind-retried-after-reboot.log",
		},
		oneClock: true,
		hosts: map[string]string{
			"caeec626": "h0", "ef9dc1c9": "h1", "651c1b14": "h2", "a66bb234": "h3", "c4d1a8d4": "x0", "27fa062a": "s0",
			"78f8d5f6": "y0", "8c6c865a": "w0", "fa6e5ac0": "z0", "5820cfea": "z1", "bd8e02d0": "z2", "717710d3": "r0",
			"675eab70": "r1", "2ae7d576": "r2", "090903de": "r3", "6d081072": "u0",
		},
		run:        runLate,
		missing:    lateMissing,
		additional: lateAdditional,
		final: []difference{
			{object: "agent/r", reason: "of the third cluster's hosts the recording has what came before the installation"},
			{object: "agent/z", field: "progress", value: StageRebooting, reason: "the recording's agents go on talking after the reboot"},
		},
	}}
}

var lateMissing = with(
	flapping,
	anyRole,
	difference{
		object: "agent/z", value: StageRebooting, reason: "the recording's agents go on talking after the reboot; ours are kept from it",
	},
)

var lateAdditional = with(flapping, anyRole,
	difference{object: "agent/", field: "deleting", reason: "shorter than the recording's period"},
	difference{object: "agent/", value: hostDiscoveringUnbound, reason: "shorter than the recording's period"},
	difference{object: "agent/", value: "AgentIsReady", reason: "as the state that it belongs to"},
	difference{object: "agent/", value: "AgentNotReady", reason: "as the state that it belongs to"},
	difference{object: "agent/", value: "known", reason: "shorter than the recording's period"},
	difference{object: "agent/", value: stateInfos[hostKnown], reason: "as its state"},
	difference{object: "agent/", field: "cond.SpecSynced", value: "unexpected end of JSON", reason: "shorter than the recording's period"},
	difference{object: "agent/u0", field: "cond.SpecSynced", value: "Host can register only", reason: "not recorded; ASSISTED 8.4 has it"},
	difference{object: "agent/", field: "bootstrap", reason: "not recorded in this run"},
	difference{object: "agent/z", value: "InstallationInProgress", reason: "the recording starts in the middle of the installation"},
	difference{object: "agent/z", value: hostInstalling, reason: "the recording starts in the middle of the installation"},
	difference{object: "agent/z", field: "debugInfo.stateInfo", reason: "the recording starts in the middle of the installation"},
	difference{object: "agent/z", field: "progress", reason: "the recording starts in the middle of the installation"},
	difference{object: "agent/z", value: hostCancelled, reason: "shorter than the recording's period"},
	difference{object: "agent/", field: "kind", reason: "not recorded in this run"},
	difference{object: "agent/r", reason: "of the third cluster's hosts the recording has what came before the installation"},
	difference{object: "agent/", value: "AgentIsNotApproved", reason: "shorter than the recording's period"},
	difference{object: "agent/", value: hostKnownUnbound, reason: "shorter than the recording's period"},
	difference{object: "agent/", value: stateInfos[hostKnownUnbound], reason: "as its state"},
	difference{object: "agent/", field: "cond.Validated", value: "ValidationsPassing", reason: "as the state that it belongs to"},
	difference{object: "aci/", value: "InsufficientAgents", reason: "hosts become ready one at a time"},
	difference{object: "aci/c3", value: clusterInstalling, reason: "not recorded for the third cluster"},
	difference{object: "aci/c3", value: clusterInfos[clusterInstalling], reason: "not recorded for the third cluster"},
	difference{object: "aci/c3", value: clusterFinalizing, reason: "not recorded for the third cluster"},
	difference{object: "aci/c3", value: clusterInfos[clusterFinalizing], reason: "not recorded for the third cluster"},
)

func runLate(d *driver) {
	d.holdAndBind()
	d.surplusHost()
	d.installAndRefuse()
	d.retryAsDayTwo()
	d.secondCluster()
	d.deleteInstalling()
	d.deleteInstalled()
	d.changeOSImages()
	d.thirdCluster()
	d.rebootRefused()
}

// osInfraEnv creates an InfraEnv that asks for an OS image.
func (d *driver) osInfraEnv(name, version string) {
	d.t.Helper()
	d.create(&aiv1.InfraEnv{ObjectMeta: d.meta(name), Spec: aiv1.InfraEnvSpec{
		PullSecretRef: &corev1.LocalObjectReference{Name: "pull-secret"}, OSImageVersion: version,
	}})
}

// bind asks for hosts of one role, with their disks named.
func (d *driver) bind(cluster, role string, hosts ...string) {
	d.t.Helper()
	for _, host := range hosts {
		d.wait(hostKnownUnbound, host)
		d.ask(host, role, cluster, d.disk(host))
	}
}

// bound waits until hosts have registered again as members of their cluster.
func (d *driver) bound(hosts ...string) {
	d.t.Helper()
	for _, host := range hosts {
		d.waitReason(host, condBound, "Bound")
	}
}

func (d *driver) waitSynced(host, reason string) {
	d.t.Helper()
	d.eventually("SpecSynced of host "+host+" to be "+reason, func() bool {
		return agentReason(d.agent(d.agents[host]), condSpecSynced) == reason
	})
}

func (d *driver) waitReason(host, kind, reason string) {
	d.t.Helper()
	d.eventually(kind+" of host "+host+" to be "+reason, func() bool { return agentReason(d.agent(d.agents[host]), kind) == reason })
}

// holdAndBind is ASSISTED 8.1: four hosts are bound to a held cluster.
func (d *driver) holdAndBind() {
	// The host that registers last becomes the bootstrap host: that of the recordings is bound last.
	d.infraEnv("ie1", "")
	d.osInfraEnv("ieosok", "4.20")
	d.waitURL("ieosok")
	d.osInfraEnv("ieosbad", "9.99")
	d.cluster("c1", 3, 1, true)
	d.start("ie1", "h0", "h1", "h3", "h2")
	d.bind("c1", roleMaster, "h0", "h1")
	d.bind("c1", roleWorker, "h3")
	d.bound("h0", "h1", "h3")
	d.bind("c1", roleMaster, "h2")
	d.waitRequirements("c1", "ClusterIsReady")
}

// surplusHost is 8.2: a fifth host is bound, goes silent, is unbound, and speaks again.
func (d *driver) surplusHost() {
	d.start("ie1", "s0", "x0")
	d.wait(hostKnownUnbound, "s0", "x0")
	d.bind("c1", roleWorker, "x0")
	d.wait(hostKnown, "x0")
	d.waitRequirements("c1", "InsufficientAgents")
	d.sim.Faults().Disconnect(d.key("x0"), true)
	d.wait(hostDisconnected, "x0")
	d.waitRequirements("c1", "ClusterNotReady")
	d.unbind("x0")
	d.wait(hostUnbinding, "x0")
	d.waitRequirements("c1", "ClusterIsReady")
	d.sim.Faults().Disconnect(d.key("x0"), false)
	d.wait(hostKnownUnbound, "x0")
}

// installAndRefuse is 8.3 and 8.4: hosts that ask to be bound during the installation are refused.
func (d *driver) installAndRefuse() {
	d.patchACI("c1", func(aci *hiveext.AgentClusterInstall) { aci.Spec.ProvisionRequirements.WorkerAgents = 0 })
	d.waitRequirements("c1", "InsufficientAgents")
	d.unhold("c1", 3, 1)
	d.waitCluster("c1", clusterPreparing)
	d.bind("c1", roleWorker, "x0")
	d.waitSynced("x0", "InputError")
	d.waitCluster("c1", clusterInstalling)
	d.start("ie1", "y0")
	d.wait(hostKnownUnbound, "y0")
	d.ask("y0", roleWorker, "c1", "")
	d.waitSynced("y0", "InputError")
	d.waitCluster("c1", clusterAddingHosts)
}

// retryAsDayTwo is the rest of 8.4: only a change of the Agent repeats the bind.
func (d *driver) retryAsDayTwo() {
	d.bind("c1", roleWorker, "x0")
	d.patchAgent(d.agents["x0"], func(a *aiv1.Agent) { a.Annotations["example.com/nudge"] = "1" })
	d.bind("c1", roleWorker, "s0")
	d.wait(hostInstallingInProgress, "x0", "s0")
	d.spoke.down.Store(true)
	d.wait(hostInstallingPending, "x0", "s0")
}

// secondCluster is 8.5 c, d and e, 8.6, and the installation of a second cluster.
func (d *driver) secondCluster() {
	d.cluster("c2", 3, 0, true)
	d.delete("y0")
	d.gone("y0")
	d.unbind("s0")
	d.wait(hostUnbindingPending, "s0")
	d.skipCleanup("x0")
	d.delete("x0")
	d.gone("x0")
	d.start("ie1", "w0", "z1", "z2", "z0")
	d.bind("c2", roleMaster, "z1", "z2")
	d.bound("z1", "z2")
	d.bind("c2", roleMaster, "z0")
	d.wait(hostKnownUnbound, "w0")
	d.delete("w0")
	d.gone("w0")
	d.waitRequirements("c2", "ClusterIsReady")
	d.sim.Faults().StageHang(d.key("z0"), StageWaitingControlPlane)
	d.sim.Faults().StageHang(d.key("z1"), StageCopyingRegistry)
	d.sim.Faults().StageHang(d.key("z2"), StageCopyingRegistry)
	d.unhold("c2", 3, 0)
	d.waitCluster("c2", clusterInstalling)
}

func (d *driver) skipCleanup(host string) {
	d.t.Helper()
	d.patchAgent(d.agents[host], func(a *aiv1.Agent) { a.Annotations[skipCleanup] = "true" })
}

// deleteInstalling is 8.2's refused unbind and 8.5 a.
func (d *driver) deleteInstalling() {
	for _, host := range []string{"z1", "z2"} {
		d.eventually("host "+host+" to copy", func() bool { return d.agent(d.agents[host]).Status.DebugInfo.StateInfo == StageCopyingRegistry })
	}
	d.unbind("z2")
	d.waitSynced("z2", "InputError")
	d.eventually("host z0 to wait", func() bool { return d.agent(d.agents["z0"]).Status.DebugInfo.StateInfo == StageWaitingControlPlane })
	d.patchAgent(d.agents["z2"], func(a *aiv1.Agent) {
		a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: "c2", Namespace: d.namespace}
	})
	d.waitSynced("z2", "SyncOK")
	d.deleteCluster("c2")
	d.wait(hostKnownUnbound, "z0", "z1", "z2")
}

// deleteInstalled is 8.5 b, c and d.
func (d *driver) deleteInstalled() {
	d.delete("s0")
	d.gone("s0")
	d.skipCleanup("h0")
	d.delete("h0")
	d.gone("h0")
	d.delete("h1")
	d.waitReason("h1", condCleanup, "CleanupFailed")
	d.deleteCluster("c1")
	d.gone("h1")
	d.wait(hostUnbindingPending, "h2", "h3")
	d.skipCleanup("h2")
	d.delete("h2")
	d.gone("h2")
	d.delete("z0")
	d.gone("z0")
	d.sim.RebootFromImage(d.key("h3"))
	d.wait(hostDiscoveringUnbound, "h3")
	d.sim.PowerOff(d.key("h3"))
	d.wait(hostDisconnectedUnbound, "h3")
}

// changeOSImages is 8.7.
func (d *driver) changeOSImages() {
	for name, version := range map[string]string{"ieosbad": "4.20", "ieosok": "9.99"} {
		env := d.infraEnvNamed(name)
		env.Spec.OSImageVersion = version
		must(d.t, d.client.Update(d.ctx, env))
	}
	d.waitURL("ieosbad")
	d.eventually("InfraEnv ieosok to lose its URL", func() bool { return d.imageReason("ieosok") == "ImageCreationError" })
}

// thirdCluster is R: the hold is cleared while the hosts are still insufficient, and u0 is bound too late.
func (d *driver) thirdCluster() {
	d.spoke.down.Store(false)
	d.cluster("c3", 3, 1, true)
	d.infraEnv("ie3", "")
	d.start("ie3", "r0", "r1", "r2", "r3")
	d.bind("c3", roleMaster, "r0", "r1", "r2")
	d.bind("c3", roleWorker, "r3")
	d.bound("r0", "r1", "r2", "r3")
	d.holdBack("not before the hold is cleared", "r0", "r1", "r2", "r3")
	d.start("ie3", "u0")
	d.wait(hostKnownUnbound, "u0")
	d.ask("u0", roleWorker, "c3", "")
	d.wait(hostInsufficient, "u0")
	d.unbind("u0")
	d.wait(hostKnownUnbound, "u0")
	d.unhold("c3", 3, 1)
	d.holdBack("", "r0", "r1", "r2", "r3")
	d.waitCluster("c3", clusterPreparing)
	d.patchAgent(d.agents["u0"], func(a *aiv1.Agent) {
		a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: "c3", Namespace: d.namespace}
	})
	d.waitSynced("u0", "InputError")
	d.sim.PowerOff(d.key("z1"))
	d.sim.PowerOff(d.key("z2"))
	d.wait(hostDisconnectedUnbound, "z1", "z2")
	d.waitCluster("c3", clusterAddingHosts)
}

// holdBack keeps hosts insufficient, or lets them go on without a message.
func (d *driver) holdBack(message string, hosts ...string) {
	for _, host := range hosts {
		d.sim.Faults().HostValidationFails(d.key(host), "hold", message)
	}
}

// rebootRefused is the end of R: a reboot repeats the refused bind, and an unbind that cannot clean up freezes the Agent.
func (d *driver) rebootRefused() {
	d.sim.Reboot(d.key("u0"))
	d.wait(hostInstallingInProgress, "u0")
	d.spoke.down.Store(true)
	d.eventually("host u0 to reboot", func() bool { return d.agent(d.agents["u0"]).Status.DebugInfo.StateInfo == StageRebooting })
	d.patchAgent(d.agents["u0"], func(a *aiv1.Agent) { a.Spec = aiv1.AgentSpec{} })
	d.wait(hostUnbindingPending, "u0")
}
