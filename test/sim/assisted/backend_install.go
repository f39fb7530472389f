// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// monitorPreparing waits for the hosts of a cluster that prepares, and for what the service makes meanwhile.
func (b *backend) monitorPreparing(c *cluster) {
	members := c.members(b)
	failed := slices.ContainsFunc(members, func(h *host) bool { return h.state == hostPreparingFailed })
	left := slices.ContainsFunc(members, func(h *host) bool { return isOneOf(h.state, leftPreparing) })
	switch {
	case failed, !left && c.unprepared != "":
		b.setClusterInfo(c, clusterReady, "Cluster failed to prepare for installation")
	case left:
		b.setClusterInfo(c, clusterInsufficient, "At least one host has stopped preparing for installation")
	case b.faults.manifests[c.aci] != "":
		b.failManifests(c)
	case allIn(members, hostPreparingSuccessful):
		c.installingSince = b.now()
		c.progress = 10
		b.setCluster(c, clusterInstalling)
	case b.now().Sub(c.since) > b.opts.Durations.prepareLimit():
		b.setClusterInfo(c, clusterReady, "Preparing cluster for installation timeout")
	}
}

// failManifests notes why they cannot be made, when the service has tried for as long as a host prepares; the next pass of the monitor
// gives the preparation up.
func (b *backend) failManifests(c *cluster) {
	if b.now().Sub(c.since) >= b.opts.Durations.Prepare {
		c.unprepared = fmt.Sprintf("failed generating install config for cluster %s: %s", c.id, b.faults.manifests[c.aci])
		b.touchCluster(c)
	}
}

// leftPreparing are the states of a host that was preparing and lost contact or started anew.
var leftPreparing = []string{hostDisconnected, hostDiscovering, hostInsufficient}

// leavePreparing takes a host back once its cluster has noticed that the preparation failed, in the order that the
// service does: the cluster is insufficient first (trace image-preparation-failure-loop). It stays ready when none of its hosts has
// failed: their states while they prepare count as ready.
func (b *backend) leavePreparing(h *host, c *cluster) {
	hostsReady := c.state == clusterReady && c.unprepared != "" && h.state != hostPreparingFailed
	if hostsReady || c.state == clusterInsufficient {
		b.setHost(h, hostKnown)
	}
}

func allIn(hosts []*host, states ...string) bool {
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h *host) bool { return !isOneOf(h.state, states) })
}

func (b *backend) setProgress(c *cluster, percent int64) {
	if percent > c.progress {
		c.progress = percent
		b.touchCluster(c)
	}
}

// monitorFinalizing completes the installation. It needs the cluster's API, through which the operators report, and an end of every host.
func (b *backend) monitorFinalizing(c *cluster, now time.Time) {
	elapsed := now.Sub(c.finalizingSince)
	if elapsed >= b.opts.Durations.Finalize/2 {
		b.setProgress(c, 95)
	}
	if now.Sub(c.since) > b.opts.Durations.finalizeLimit() {
		b.setClusterInfo(c, clusterError, "Cluster installation timeout while finalizing")
		return
	}
	if message := b.faults.operators[c.aci]; message != "" && elapsed >= b.opts.Durations.Finalize {
		b.setClusterInfo(c, clusterError, message)
		return
	}
	if c.waits(b) {
		b.setCluster(c, clusterInstallingPending)
		return
	}
	if elapsed < b.opts.Durations.Finalize || !allIn(c.founders(b), hostInstalled, hostError) || !b.operatorsUp(c) {
		return
	}
	c.progress = 100
	b.setClusterInfo(c, clusterAddingHosts, c.completedInfo(b))
}

// operatorsUp says whether the operators of a cluster have come up. They report through its API.
func (b *backend) operatorsUp(c *cluster) bool {
	return !b.faults.hanging[c.aci] && b.opts.Workload.Status(c.cd).APIUp
}

// failRest fails the other hosts of a failed cluster, also those that are installed (ASSISTED 3.11). The stage of a host stays: of an
// installed one it is the last.
func (b *backend) failRest(c *cluster) {
	for _, h := range c.founders(b) {
		if h.state != hostError {
			b.failHost(h, "Host is part of a cluster that failed to install")
		}
	}
}

// startAddition installs a known and approved day-2 host: there is nothing else to wait for.
func (b *backend) startAddition(h *host) {
	if h.kind == kindAddition && h.approved && h.specSynced {
		b.setHost(h, hostInstalling)
	}
}

// monitorInstall moves a host whose cluster installs, as far as the host's own reports do not.
func (b *backend) monitorInstall(h *host, now time.Time) {
	c := b.clusters[h.clusterID]
	if c == nil {
		return
	}
	switch h.state {
	case hostPreparing:
		b.finishPreparing(h, c, now)
	case hostPreparingSuccessful:
		if c.state == clusterInstalling {
			b.setHost(h, hostInstalling)
		}
		b.leavePreparing(h, c)
	case hostPreparingFailed:
		b.leavePreparing(h, c)
	case hostInstallingInProgress, hostInstallingPending:
		b.advanceAfterReboot(h, c, now)
		b.failOverdue(h, now)
		b.failForgotten(h, c, now)
	}
}

// failOverdue fails a host that is in one stage for too long. Of Rebooting see advanceAfterReboot.
func (b *backend) failOverdue(h *host, now time.Time) {
	stage := h.stageName()
	limit := b.opts.Durations.stageLimit(stage)
	if h.state == hostInstallingInProgress && stage != StageRebooting && stage != StageDone && now.Sub(b.stageSince(h)) > limit {
		b.failHost(h, fmt.Sprintf("Host failed to install because its installation stage %s took longer than expected %s", stage, limit))
	}
}

func (b *backend) finishPreparing(h *host, c *cluster, now time.Time) {
	if c.state != clusterPreparing {
		b.leavePreparing(h, c)
		return
	}
	if now.Sub(h.since) < b.opts.Durations.Prepare || b.hostFaults(h).hangStage == hostPreparing {
		return
	}
	if b.hostFaults(h).takePrepareFailure() {
		b.setHost(h, hostPreparingFailed)
		return
	}
	b.setHost(h, hostPreparingSuccessful)
}

// stagesFor are the stages of a host at the start of its installation.
func (b *backend) stagesFor(h *host) []string {
	c := b.clusters[h.clusterID]
	switch {
	case h.kind == kindHost && c != nil && c.spec.ControlPlaneAgents == 1 && h.effectiveRole() == roleMaster:
		return singleNodeStages
	case h.kind == kindHost && h.bootstrap:
		return bootstrapStages
	case h.votes():
		return masterStages
	}
	return workerStages
}

// beginStages is the host's answer to the order to install.
func (b *backend) beginStages(h *host, now time.Time) {
	if now.Sub(h.since) >= b.opts.Durations.Stage/2 {
		b.enterStage(h, 0)
	}
}

// enterStage moves a host to a stage of its own list, or fails it there when a fault says so.
func (b *backend) enterStage(h *host, index int) {
	if h.stages == nil {
		h.stages = b.stagesFor(h)
	}
	stage := h.stages[index]
	if message, failed := b.hostFaults(h).takeStageFailure(stage); failed {
		b.failHost(h, "Failed - "+message)
		return
	}
	h.stage, h.stageEntered = index, b.now()
	if stage == StageRebooting {
		b.leaveImage(h)
	}
	switch {
	case stage == StageDone && h.kind == kindHost:
		b.setHost(h, hostInstalled)
	case stage == StageDone:
		b.touchHost(h)
	default:
		b.setHostInfo(h, hostInstallingInProgress, stage)
	}
	b.touchHost(h)
}

// leaveImage is the reboot from the discovery image: the machine falls silent until it runs from its disk.
func (b *backend) leaveImage(h *host) {
	if m := b.running[h.id]; m != nil && m.mode == machineAgent {
		b.writeDisk(m, h)
		h.reached, m.served = false, false
		m.mode, m.due = machineRebooting, b.now().Add(b.jitter(b.opts.Durations.Reboot))
	}
}

// advanceOnAgent is what the installer on the host reports: the stages up to the reboot.
func (b *backend) advanceOnAgent(h *host, now time.Time) {
	if h.rebooted() || now.Sub(h.stageEntered) < b.opts.Durations.Stage || b.hostFaults(h).hangStage == h.stageName() {
		return
	}
	if !b.mayLeave(h) {
		return
	}
	b.enterStage(h, h.stage+1)
}

// mayLeave says whether what the host's stage waits for is there.
func (b *backend) mayLeave(h *host) bool {
	c := b.clusters[h.clusterID]
	if c == nil || h.kind != kindHost {
		return c != nil
	}
	others := min(2, c.spec.ControlPlaneAgents+c.spec.ArbiterAgents-1)
	switch h.stageName() {
	case StageWaitingBootkube:
		return b.joinedVoters(c, h) >= others
	case StageWaitingControlPlane:
		return h.bootstrap || b.joinedVoters(c, h) >= others
	}
	return true
}

// votes says whether the host has a member of etcd: the installer waits for arbiters as it does for control-plane hosts.
func (h *host) votes() bool { return isOneOf(h.effectiveRole(), []string{roleMaster, roleArbiter}) }

// joinedVoters counts the other hosts with a member of etcd that have joined.
func (b *backend) joinedVoters(c *cluster, h *host) int {
	n := 0
	for _, other := range c.founders(b) {
		joined := slices.Index(other.stages, StageJoined)
		if other != h && other.votes() && joined >= 0 && other.stage >= joined {
			n++
		}
	}
	return n
}

// advanceAfterReboot is what the installed cluster shows of a host that runs from its disk.
func (b *backend) advanceAfterReboot(h *host, c *cluster, now time.Time) {
	if !h.rebooted() {
		return
	}
	if h.state == hostInstallingInProgress && h.stageName() == StageRebooting && now.Sub(b.stageSince(h)) > b.opts.Durations.RebootTimeout {
		b.setHostInfo(h, hostInstallingPending, "Host timed out when pulling the configuration files. Verify in the host console "+
			"that the host boots from the OpenShift installation disk and has network access to the cluster API")
		return
	}
	m := b.running[h.id]
	status := b.opts.Workload.Status(c.cd)
	if h.kind == kindAddition && !h.reached {
		return // The service cannot see the Node: the host stays where it is, and nothing says why (ASSISTED 2.3).
	}
	if m == nil || m.mode != machineDisk || !status.APIUp || b.hostFaults(h).hangStage == h.stageName() {
		return
	}
	node := status.Nodes[h.nodeName()]
	if h.kind == kindAddition {
		b.advanceAddition(h, node)
		return
	}
	b.advanceFounder(h, node)
}

// advanceFounder is one step of a day-1 host: the controller inside the cluster reports them one at a time.
func (b *backend) advanceFounder(h *host, node NodeStatus) {
	next := h.stages[min(h.stage+1, len(h.stages)-1)]
	switch {
	case next == StageJoined && !node.Joined, next == StageDone && !node.Ready:
		return
	}
	b.enterStage(h, h.stage+1)
}

// advanceAddition is one step of a day-2 host: the service itself looks at the cluster's Node (ASSISTED 2.3). Done is
// seen for a moment before the host counts as added.
func (b *backend) advanceAddition(h *host, node NodeStatus) {
	switch {
	case h.stageName() == StageDone:
		// One that has booted the discovery image again after that stays as it is: no stage is reported any more.
		if h.state == hostInstallingInProgress {
			b.setHost(h, hostAdded)
		}
	case node.Ready:
		h.nodeAddition.approvedAt = b.now()
		b.enterStage(h, len(h.stages)-1)
	case node.Joined && h.stageName() != StageJoined:
		b.enterStage(h, slices.Index(h.stages, StageJoined))
	}
}

// applyWorkloads tells the installed clusters which of their hosts run.
func (b *backend) applyWorkloads() {
	for _, c := range b.clusters {
		switch {
		case c.state == clusterPreparing || !c.installingSince.IsZero():
			b.metal.clusters[c.cd] = b.workloadSpec(c)
		case !c.spec.Imported || b.metal.clusters[c.cd].Key == types.NamespacedName{}:
			continue // It is not installed yet; or it was elsewhere, and is of no interest here.
		}
		b.opts.Workload.Apply(b.withNodes(b.metal.clusters[c.cd]))
	}
}

func (b *backend) workloadSpec(c *cluster) ClusterSpec {
	return ClusterSpec{
		Key: c.cd, Name: c.spec.Name, BaseDomain: c.spec.BaseDomain, APIVIPs: c.spec.APIVIPs, ClusterID: c.openshift,
		ReleaseImage: c.spec.ReleaseImage, MachineAPI: c.spec.MachineAPI, Installing: !c.installingSince.IsZero(),
		Complete: c.state == clusterAddingHosts,
		Pivoting: slices.ContainsFunc(c.founders(b), b.pivots),
	}
}

// pivots says whether a bootstrap host is on its way from the discovery image to its disk.
func (b *backend) pivots(h *host) bool {
	m := b.running[h.id]
	return h.bootstrap && h.stageName() == StageRebooting && m != nil && m.mode == machineRebooting
}

// withNodes adds the machines that run from a disk with the cluster on it.
func (b *backend) withNodes(spec ClusterSpec) ClusterSpec {
	for _, key := range sortedHostKeys(b.machines) {
		m := b.machines[key]
		if m.installed && m.cluster == spec.Key && m.started {
			node := m.node
			node.Running, node.Served = m.mode == machineDisk, m.served
			spec.Nodes = append(spec.Nodes, node)
		}
	}
	return spec
}
