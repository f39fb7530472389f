// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"crypto/md5"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// hostID is the name that the discovery agent gives itself: the MD5 of the board's serial number in the shape of a UUID,
// else the system UUID, else the MD5 of the lowest MAC (ASSISTED fact 9).
func hostID(hw HostHardware) string {
	switch {
	case hw.Serial != "":
		return md5UUID(hw.Serial)
	case hw.SystemUUID != "":
		return strings.ToLower(hw.SystemUUID)
	}
	var macs []string
	for _, nic := range hw.NICs {
		macs = append(macs, strings.ToLower(nic.MAC))
	}
	if len(macs) == 0 {
		return md5UUID("")
	}
	return md5UUID(slices.Min(macs))
}

func md5UUID(text string) string {
	sum := md5.Sum([]byte(text))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:])
}

// answer is what the service says to a registration.
type answer int

const (
	// refused are the codes 401, 403, 404 and 409: the agent gives up until its host is rebooted (ASSISTED fact 1).
	refused answer = iota
	// again is the code 400: the agent registers once more after a while.
	again
	// accepted: the agent asks for instructions from now on.
	accepted
)

// register is a host's POST to an InfraEnv.
func (b *backend) register(m *machine, now time.Time) answer {
	env := b.infraEnvs[m.infraEnv]
	if env == nil {
		return refused
	}
	id := hostID(m.hardware)
	m.hostID = id
	b.running[id] = m
	h := b.hosts[id]
	if h == nil {
		return b.registerNew(env, id, now)
	}
	return b.registerAgain(h, env, now)
}

func (b *backend) registerNew(env *infraEnv, id string, now time.Time) answer {
	h := &host{id: id, infraEnv: env.key, registered: now, lastSeen: now, kind: kindHost, specSynced: true}
	if env.clusterRef != nil {
		c := b.clusters[env.clusterID]
		if c == nil || !isOneOf(c.state, acceptingStates) {
			return refused
		}
		h.clusterID = c.id
	}
	b.hosts[id] = h
	b.discover(h)
	return accepted
}

// discover starts the discovery of a host anew: no hardware report yet.
func (b *backend) discover(h *host) {
	b.registrations++
	h.order, h.registered = b.registrations, b.now()
	h.inventory = nil
	h.stages, h.stage, h.bootstrap = nil, -1, false
	h.nodeAddition = nodeAddition{}
	h.kind = kindHost
	if c := b.clusters[h.clusterID]; c != nil {
		if c.state == clusterAddingHosts {
			h.kind = kindAddition
			h.suggestedRole = roleWorker
		}
		h.bootstrap = c.spec.ControlPlaneAgents == 1 && h.kind == kindHost
		if h.bootstrap {
			h.suggestedRole = roleMaster
		}
	} else {
		h.suggestedRole = ""
	}
	b.setHost(h, h.variant(hostDiscovering))
	b.touchHost(h)
}

// wrongBoot is what the service says of a host that should run from its disk.
const wrongBoot = "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot order to boot " +
	"from disk"

// registerAgain is a registration of a host that the service knows already, by the rules of its state machine.
func (b *backend) registerAgain(h *host, env *infraEnv, now time.Time) answer {
	if h.infraEnv != env.key {
		h.lastSeen = now
		return b.moveHost(h, env, now)
	}
	// The reboot into the disk, or a day-2 host that has been added. A day-1 host that is further than the reboot has failed.
	expected := h.stageName() == StageRebooting || h.kind == kindAddition && h.stageName() == StageDone
	reply := accepted
	switch h.state {
	case hostUnbinding, hostUnbindingPending, hostReclaimingRebooting:
		h.clusterID = ""
		b.discover(h)
	case hostInstallingInProgress, hostAdded:
		if expected {
			b.setHostInfo(h, hostInstallingPending, wrongBoot)
		} else {
			b.failHost(h, "The host unexpectedly restarted during the installation")
		}
	case hostInstalling:
		b.failHost(h, "The host unexpectedly restarted during the installation")
	case hostError: // Nothing changes, so that the agent can still be told to leave the cluster.
	case hostInstallingPending, hostInstalled, hostPreparingFailed, hostReclaiming, hostCancelled:
		reply = again
	default:
		b.discover(h)
	}
	if reply == accepted {
		h.lastSeen = now
	}
	return reply
}

// moveHost gives a host to another InfraEnv: everything that was asked of it is forgotten (ASSISTED 1.2).
func (b *backend) moveHost(h *host, env *infraEnv, now time.Time) answer {
	old := h.key()
	delete(b.hosts, h.id)
	if reply := b.registerNew(env, h.id, now); reply != accepted {
		b.hosts[h.id] = h
		return reply
	}
	b.dirtyAgents[old] = true
	b.hosts[h.id].moved = &old
	return accepted
}

// removeHost deregisters a host, unless it is another registration by now. Its next poll freezes it.
func (b *backend) removeHost(view hostView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[view.id]
	if h == nil || h != view.of {
		return
	}
	delete(b.hosts, view.id)
	if c := b.clusters[h.clusterID]; c != nil {
		b.touchCluster(c)
	}
}

// bind assigns a host to the cluster of a ClusterDeployment (ASSISTED 8.4).
func (b *backend) bind(id string, cd types.NamespacedName) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	c := b.clusters[b.byCD[cd]]
	if h == nil || c == nil {
		return serverError("Failed to get cluster of ClusterDeployment %s: record not found", cd)
	}
	if !isOneOf(c.state, acceptingStates) {
		return userError("Host can register only in one of the following states: [insufficient ready pending-for-input adding-hosts]")
	}
	if h.state != hostKnownUnbound {
		return serverError("no condition found to run transition")
	}
	h.clusterID = c.id
	h.inventory = nil
	b.setHost(h, hostBinding)
	return nil
}

// unbind takes a host out of its cluster (ASSISTED 8.2).
func (b *backend) unbind(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.clusterID == "" {
		return nil
	}
	c := b.clusters[h.clusterID]
	if h.kind == kindHost && isOneOf(h.state, installingStates) && c != nil {
		return userError("cancelling non-day-2 host [%s] in the middle of installation is not allowed", h.id)
	}
	// The service reboots an installed host into the discovery image by a pod of the cluster, if it reaches the cluster (ASSISTED 1.2).
	reclaim := c != nil && isOneOf(h.state, []string{hostInstalled, hostAdded}) && c.reachable && b.opts.Workload.Status(c.cd).APIUp
	b.leaveCluster(h, c)
	if reclaim {
		b.setHost(h, hostReclaiming)
	}
	return nil
}

// reclaim is one pass of the host monitor over a host that the service reboots. A host that does not come back needs a person.
func (b *backend) reclaim(h *host, now time.Time) {
	m := b.running[h.id]
	waited := now.Sub(h.since)
	switch {
	case waited >= b.opts.Durations.StageTimeout:
		b.setHost(h, hostUnbindingPending)
	case h.state == hostReclaiming && waited >= b.opts.Durations.Stage && m != nil && m.mode == machineDisk:
		m.installed, m.started = false, false
		b.powerOn(m)
		b.setHost(h, hostReclaimingRebooting)
	}
}

// leaveCluster starts an unbind: a host that has not begun to install leaves by itself at its next poll, any other needs
// a reboot.
func (b *backend) leaveCluster(h *host, c *cluster) {
	next := hostUnbindingPending
	if isOneOf(h.state, preInstallStates) {
		next = hostUnbinding
	}
	if c != nil {
		h.deprovision = &deprovision{cluster: c.cd, node: h.nodeName(), message: "Waiting for host to unbind to do spoke cleanup"}
		b.touchCluster(c)
	}
	h.role, h.suggestedRole, h.lostDisk = "", "", true
	h.clusterID, h.kind = "", kindHost
	h.stages, h.stage, h.bootstrap = nil, -1, false
	b.setHost(h, next)
	b.touchHost(h)
}
