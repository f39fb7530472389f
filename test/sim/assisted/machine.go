// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// machineMode is what a machine is doing.
type machineMode int

const (
	machineOff machineMode = iota
	machineBooting
	machineAgent
	machineFrozen
	machineRebooting
	machineDisk
	// machineLeftover runs what an earlier life has left on its disk, of which nobody hears.
	machineLeftover
)

// machine is a physical host and the agent that runs on it. It is not the service's row of it: the service may have
// forgotten a machine that still runs, and remember one that is gone.
type machine struct {
	key      HostKey
	hardware HostHardware
	// hub is the management cluster whose BareMetalHost the machine obeys, by its service.
	hub *backend
	// boots counts the times that it was powered on or rebooted.
	boots int
	// infraEnv is what its discovery image belongs to.
	infraEnv types.NamespacedName
	mode     machineMode
	// due is when the next thing happens: the registration, the next poll, or the end of a reboot.
	due    time.Time
	hostID string
	silent bool
	// installed says that the disk holds a system: that of a node of a cluster, the ClusterDeployment's key.
	// started says that it has booted at least once.
	installed bool
	started   bool
	// leftover says that the disk holds a system of an earlier life, because the host was freed without being cleaned.
	leftover bool
	// medium says that the next boot is the one that its provisioning asks for, from the virtual medium. It is asked for once: all later ones
	// are from the disk, and from the medium only where no disk can be booted (METAL3 M3-69).
	medium bool
	node   NodeSpec
	// served says that a service looks after it in its cluster.
	served  bool
	cluster types.NamespacedName
}

// powerOn boots the discovery image, or what is on the disk.
func (b *backend) powerOn(m *machine) {
	m.boots++
	provisioned := m.medium
	m.medium = false
	switch {
	case m.installed:
		m.mode, m.due = machineRebooting, b.now().Add(b.opts.Durations.Reboot)
		return
	case m.leftover && !provisioned:
		m.mode = machineLeftover
		return
	}
	if b.faults.of(m.key).takeFailedBoot() {
		m.mode = machineFrozen
		return
	}
	m.mode, m.due = machineBooting, b.now().Add(b.jitter(b.opts.Durations.Discovery))
}

// tickMachine does what the machine does by itself.
func (b *backend) tickMachine(m *machine, now time.Time, serviceUp bool) {
	if b.faults.of(m.key).neverBoots {
		return
	}
	b.work(m, now, serviceUp)
	if now.Before(m.due) {
		return
	}
	switch m.mode {
	case machineBooting:
		b.registerMachine(m, now, serviceUp)
	case machineAgent:
		b.pollMachine(m, now, serviceUp)
	case machineRebooting:
		b.finishReboot(m)
	case machineOff, machineFrozen, machineDisk, machineLeftover:
	}
}

func (b *backend) registerMachine(m *machine, now time.Time, serviceUp bool) {
	m.due = now.Add(b.jitter(b.opts.Durations.AgentPoll))
	if !serviceUp {
		return
	}
	switch b.register(m, now) {
	case accepted:
		m.mode = machineAgent
	case refused:
		m.mode = machineFrozen
	case again:
	}
}

// finishReboot is the first boot from disk, or from the image once more where the boot order is wrong. What is on the disk stays: it boots
// as soon as the boot order is right.
func (b *backend) finishReboot(m *machine) {
	if b.faults.of(m.key).wrongBootOrder {
		m.mode = machineBooting
		return
	}
	m.mode, m.started = machineDisk, true
}

// writeDisk makes the machine a node of its cluster, from its next boot on.
func (b *backend) writeDisk(m *machine, h *host) {
	c := b.clusters[h.clusterID]
	if c == nil {
		return
	}
	m.installed, m.leftover, m.cluster = true, false, c.cd
	hw := b.found(m)
	m.node = NodeSpec{
		Name: h.nodeName(), Role: h.effectiveRole(), Addresses: addresses(&hw), Architecture: hw.architecture(),
		Labels: maps.Clone(h.nodeLabels), Day2: h.kind == kindAddition, Disk: fmt.Sprintf("%s/%d", h.id, m.boots),
	}
}

// pollMachine is one question for instructions, and the work that the answer asks for.
func (b *backend) pollMachine(m *machine, now time.Time, serviceUp bool) {
	m.due = now.Add(b.jitter(b.opts.Durations.AgentPoll))
	if !serviceUp || m.silent {
		return
	}
	h := b.hosts[m.hostID]
	if h == nil {
		m.mode = machineFrozen
		return
	}
	h.lastSeen = now
	switch h.state {
	case hostBinding, hostUnbinding, hostUnbindingPending:
		// The agent is told to exit, and is started again at once.
		m.mode, m.due = machineBooting, now.Add(b.jitter(b.opts.Durations.Inventory))
	case hostInstalling:
		b.beginStages(h, now)
	case hostDisconnected, hostDisconnectedUnbound:
		b.monitorHost(h, now)
	}
}

// work is what an agent reports by itself between two polls: the hardware, and the stages of the installation.
func (b *backend) work(m *machine, now time.Time, serviceUp bool) {
	h := b.hosts[m.hostID]
	if m.mode != machineAgent || !serviceUp || m.silent || h == nil {
		return
	}
	switch h.state {
	case hostBinding, hostUnbinding, hostUnbindingPending: // It has to register again first.
	case hostInstallingInProgress:
		b.advanceOnAgent(h, now)
	default:
		b.report(m, h, now)
	}
}

// report sends the hardware once the host has had the time to collect it.
func (b *backend) report(m *machine, h *host, now time.Time) {
	if h.inventory != nil || now.Sub(h.registered) < b.opts.Durations.Inventory {
		return
	}
	hw := b.found(m)
	h.inventory, h.inventoryAt = &hw, now
	b.touchHost(h)
}

// found is the hardware of a machine as its agent finds it.
func (b *backend) found(m *machine) HostHardware {
	if env := b.infraEnvs[m.infraEnv]; env != nil {
		return env.image.booted(m.hardware)
	}
	return m.hardware
}

// addresses are the host's IPs without prefix length.
func addresses(hw *HostHardware) []string {
	var out []string
	for _, nic := range hw.NICs {
		for _, ip := range nic.IPs {
			address, _, _ := strings.Cut(ip, "/")
			out = append(out, address)
		}
	}
	return out
}
