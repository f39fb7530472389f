// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"slices"
	"time"
)

// minWorkers is how many workers of the first installation have to be installed where it has more than one.
const minWorkers = 2

const (
	pendingTooLong = "cluster installation timed out while pending user action (a manual booting from installation disk)"
	notAllWorkers  = "Cluster is installed but some workers did not join"
	neverBooted    = "Host failed to boot from the installation disk within the expected time. The host had wrong boot order and did not " +
		"recover. To include this host, reset the cluster and fix the boot order, or continue installation with remaining hosts"
)

// installableStates are those of a host that is being installed, or is installed: those that are left count when one has failed.
var installableStates = []string{
	hostPreparingSuccessful, hostInstalling, hostInstallingInProgress, hostInstallingPending, hostInstalled,
}

// reenteredStages are those in which no time passes for a host while another one of its cluster waits for a person.
var reenteredStages = []string{StageWaitingControlPlane, StageWaitingController, StageWaitingBootkube, StageRebooting}

// enough says whether so many hosts are in one of the states that the cluster can be installed with them: all that have a member of etcd,
// and two workers, or none where there is one alone. A host that without leaves out does not count.
func (c *cluster) enough(b *backend, without *host, states ...string) bool {
	voters, workers, fit := 0, 0, 0
	for _, h := range c.founders(b) {
		counts := h != without && isOneOf(h.state, states)
		if h.votes() {
			voters += btoi(counts)
			continue
		}
		workers++
		fit += btoi(counts)
	}
	return voters >= c.spec.ControlPlaneAgents+c.spec.ArbiterAgents && (workers < minWorkers || fit >= minWorkers)
}

// waits says whether a host of the first installation waits for a person.
func (c *cluster) waits(b *backend) bool {
	return slices.ContainsFunc(c.founders(b), func(h *host) bool { return h.state == hostInstallingPending })
}

// monitorInstalling follows the hosts: too few that are left fail the cluster, one that waits for a person lets it wait as well, and when
// enough of them are installed the cluster is finalized, whatever the others do.
func (b *backend) monitorInstalling(c *cluster, now time.Time) {
	b.countProgress(c)
	installed := c.enough(b, nil, hostInstalled)
	switch {
	case !c.enough(b, nil, installableStates...):
		b.setCluster(c, clusterError)
	case c.state == clusterInstallingPending && now.Sub(c.installingSince) > b.opts.Durations.installLimit():
		b.setClusterInfo(c, clusterError, pendingTooLong)
	case c.waits(b):
		c.waitedUntil = now
		b.setCluster(c, clusterInstallingPending)
	case !installed:
		b.setCluster(c, clusterInstalling)
	default:
		if c.finalizingSince.IsZero() {
			c.finalizingSince = now
		}
		b.setCluster(c, clusterFinalizing)
	}
}

// countProgress is the share of the stages that the hosts of the first installation have behind them.
func (b *backend) countProgress(c *cluster) {
	founders, percent := c.founders(b), int64(0)
	for _, h := range founders {
		percent += stagePercent(h.stages, h.stage)
	}
	if len(founders) > 0 {
		b.setProgress(c, 10+70*percent/int64(100*len(founders)))
	}
}

// completedInfo is what is said of a cluster that is installed.
func (c *cluster) completedInfo(b *backend) string {
	if !allIn(c.founders(b), hostInstalled) {
		return notAllWorkers
	}
	return clusterInfos[clusterAddingHosts]
}

// failForgotten fails a host that waits for a person for too long, if the cluster can be installed without it.
func (b *backend) failForgotten(h *host, c *cluster, now time.Time) {
	if h.state != hostInstallingPending || h.kind != kindHost || now.Sub(h.since) <= b.opts.Durations.pendingLimit() {
		return
	}
	if c.enough(b, h, installableStates...) {
		b.failHost(h, neverBooted)
	}
}

// stageSince is since when a host counts as being in its stage, for its time in it.
func (b *backend) stageSince(h *host) time.Time {
	c := b.clusters[h.clusterID]
	if c != nil && isOneOf(h.stageName(), reenteredStages) && c.waitedUntil.After(h.stageEntered) {
		return c.waitedUntil
	}
	return h.stageEntered
}
