// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Host is a host of the cluster, or a Node that no host has any more.
type Host struct {
	// Name is the name of the host and of its Node; Role is master, arbiter or worker. Disk identifies what is installed on the host: another
	// value is a host that was installed again. It is empty for a Node without a host.
	Name, Role, Disk string
	// Running says that the host has power. Node says that its Node exists; Ready that it is ready, Cordoned that it is unschedulable.
	Running, Node, Ready, Cordoned bool
	// Drained says that nothing is left on the host that a drain evicts, Held that it must not restart now in spite of that.
	Drained, Held bool
}

// phase is what the machine-config operator does with a host.
type phase int

// A host that gets another release is cordoned and drained, restarts, is waited for, and is uncordoned.
const (
	settled phase = iota
	draining
	restarting
	returning
	uncordoning
)

// machine is a host as the machine-config operator knows it.
type machine struct {
	pool, disk       string
	release, desired Release
	phase            phase
	since            time.Time
}

// Machine is what the machine-config operator makes of a host.
type Machine struct {
	// Release is what runs on the host.
	Release Release
	// CurrentConfig, DesiredConfig and State are annotations of the Node.
	CurrentConfig, DesiredConfig, State string
	// Drains says that the host is cordoned and drained, Uncordons that the cordon is taken away.
	Drains, Uncordons bool
	// Away says that the host restarts: neither its kubelet nor its etcd runs.
	Away bool
}

// Boot is the release with which a host comes that the cluster has not seen yet: that of its pool. A host that is known keeps its own.
func (c *Cluster) Boot(name, role, disk string) Release {
	former := c.machines[name]
	if former != nil && (disk == "" || former.disk == disk) {
		return former.release
	}
	p := c.pool(poolOf(role))
	m := &machine{pool: p.name, disk: disk, release: p.current, desired: p.current}
	if former != nil && former.phase != settled {
		m.phase = returning // Its Node is cordoned still.
	}
	c.machines[name] = m
	return p.current
}

// Machine is what becomes of a host; the zero value for one that is not known.
func (c *Cluster) Machine(name string) Machine {
	m := c.machines[name]
	if m == nil {
		return Machine{}
	}
	state := "Done"
	if m.phase != settled {
		state = "Working"
	}
	if c.brokenHost(m.pool) == name {
		state = "Degraded"
	}
	return Machine{
		Release: m.release, CurrentConfig: rendered(m.pool, m.release), DesiredConfig: rendered(m.pool, m.desired), State: state,
		Drains: m.phase == draining, Uncordons: m.phase == uncordoning, Away: m.phase == restarting,
	}
}

// Away reports whether a host restarts because it gets another release.
func (c *Cluster) Away(name string) bool {
	m := c.machines[name]
	return m != nil && m.phase == restarting
}

// observeHosts remembers the hosts, and forgets those of which nothing is left.
func (c *Cluster) observeHosts() {
	seen := map[string]bool{}
	for _, host := range c.in.Hosts {
		seen[host.Name] = true
		c.Boot(host.Name, host.Role, host.Disk)
	}
	maps.DeleteFunc(c.machines, func(name string, _ *machine) bool { return !seen[name] })
}

// runHosts lets every host do its next step. One that restarts needs no API for that.
func (c *Cluster) runHosts() {
	for _, host := range c.in.Hosts {
		m := c.machines[host.Name]
		if m.phase == restarting && host.Running && c.now.Sub(m.since) >= c.options.Restart {
			m.release, m.phase = m.desired, returning
			continue
		}
		if c.in.API {
			c.runHost(host, m)
		}
	}
}

// runHost is a step of a host that the operator makes in the API.
func (c *Cluster) runHost(host Host, m *machine) {
	switch {
	case m.phase == draining && !host.Node:
		m.phase, m.desired = settled, m.release
	case m.phase == draining && host.Running && host.Drained && !host.Held:
		m.phase, m.since = restarting, c.now
	case m.phase == returning && host.Node && host.Ready:
		m.phase = uncordoning
	case m.phase == uncordoning && !host.Cordoned:
		m.phase = settled
	}
}

// The MachineConfigPools. There is one of arbiters only where there are arbiters.
const (
	Master  = "master"
	Worker  = "worker"
	Arbiter = "arbiter"
)

func poolOf(role string) string {
	if role == Master || role == Arbiter {
		return role
	}
	return Worker
}

// pool is a MachineConfigPool: current is what all its hosts have, target what they should have.
type pool struct {
	name            string
	target, current Release
}

// pool finds a pool. That of the arbiters begins with the first of them.
func (c *Cluster) pool(name string) *pool {
	index := slices.IndexFunc(c.pools, func(p *pool) bool { return p.name == name })
	if index >= 0 {
		return c.pools[index]
	}
	p := &pool{name: name, target: c.pools[0].current, current: c.pools[0].current}
	c.pools = append(c.pools, p)
	return p
}

// required are the pools that the cluster cannot be without: the update waits for them.
func (c *Cluster) required() []*pool {
	return slices.DeleteFunc(slices.Clone(c.pools), func(p *pool) bool { return p.name == Worker })
}

// rollOut gives the required pools the target, and reports whether they have it.
func (c *Cluster) rollOut() bool {
	done := true
	for _, p := range c.required() {
		p.target = c.target
		done = c.has(p) && done
	}
	return done
}

// updatePools begins with the next host where no host is unavailable. The hosts of the control plane are one group for that, because their
// etcd is one; the workers get a release when the cluster has it, while real ones may begin beside the control plane.
func (c *Cluster) updatePools() {
	for _, p := range c.pools {
		if c.has(p) {
			p.current = p.target
		}
	}
	c.next(c.required())
	c.next([]*pool{c.pool(Worker)})
}

// next begins with the first host of a group that has another release than its pool, if every host of the group is available.
func (c *Cluster) next(group []*pool) {
	for _, p := range group {
		if !c.all(p.name, func(host Host, m *machine) bool {
			return m.phase == settled && (!host.Node || host.Ready && !host.Cordoned)
		}) {
			return
		}
	}
	for _, p := range group {
		if c.in.Paused[p.name] || c.Knobs.PoolDegraded[p.name] != "" {
			continue
		}
		if name := c.behind(p); name != "" {
			c.machines[name].desired, c.machines[name].phase = p.target, draining
			return
		}
	}
}

// has reports whether every host of a pool has its target. A release that was given up may have come to some of them.
func (c *Cluster) has(p *pool) bool {
	return c.all(p.name, func(_ Host, m *machine) bool { return m.phase == settled && m.release.Image == p.target.Image })
}

// behind is the first host of a pool that has another release, by name.
func (c *Cluster) behind(p *pool) string {
	for _, host := range c.hostsOf(p.name) {
		if host.Node && c.machines[host.Name].release.Image != p.target.Image {
			return host.Name
		}
	}
	return ""
}

// all reports whether something holds for every host of a pool that has a Node, or is on its way to have it again.
func (c *Cluster) all(pool string, holds func(Host, *machine) bool) bool {
	return !slices.ContainsFunc(c.hostsOf(pool), func(host Host) bool {
		m := c.machines[host.Name]
		return (host.Node || m.phase != settled) && !holds(host, m)
	})
}

// hostsOf are the hosts of a pool, by name.
func (c *Cluster) hostsOf(pool string) []Host {
	hosts := slices.DeleteFunc(slices.Clone(c.in.Hosts), func(host Host) bool { return c.machines[host.Name].pool != pool })
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return hosts
}
