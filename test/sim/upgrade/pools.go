// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
)

// Pool is what the machine-config operator says of a MachineConfigPool.
type Pool struct {
	Name string
	// Current and Target are the names of the configurations that all hosts have and should have.
	Current, Target string
	// Machines are all hosts with a Node. Updated ones have the target; Ready ones have it and are available; Unavailable ones are not ready,
	// cordoned, or being changed; Degraded ones cannot be changed.
	Machines, Updated, Ready, Unavailable, Degraded int
	// IsUpdated and IsUpdating are conditions with their messages. A paused pool that stays behind is neither.
	IsUpdated, IsUpdating           bool
	UpdatedMessage, UpdatingMessage string
	// Failure is what degrades the pool.
	Failure string
}

// Pools are the reports of all pools.
func (c *Cluster) Pools() []Pool {
	var out []Pool
	for _, p := range c.pools {
		out = append(out, c.reportPool(p))
	}
	return out
}

func (c *Cluster) reportPool(p *pool) Pool {
	report := Pool{Name: p.name, Current: rendered(p.name, p.current), Target: rendered(p.name, p.target)}
	for _, host := range c.hostsOf(p.name) {
		if !host.Node {
			continue
		}
		m := c.machines[host.Name]
		available := m.phase == settled && host.Ready && !host.Cordoned
		report.Machines++
		if !available {
			report.Unavailable++
		}
		if m.phase == settled && m.release.Image == p.target.Image {
			report.Updated++
			if available {
				report.Ready++
			}
		}
	}
	report.IsUpdated = report.Updated == report.Machines && report.Unavailable == 0
	report.IsUpdating = !report.IsUpdated && !c.in.Paused[p.name]
	if report.IsUpdated {
		report.UpdatedMessage = "All nodes are updated with MachineConfig " + report.Target
	}
	if report.IsUpdating {
		report.UpdatingMessage = "All nodes are updating to MachineConfig " + report.Target
	}
	if name := c.brokenHost(p.name); name != "" {
		report.Degraded = 1
		report.Failure = fmt.Sprintf("Node %s is reporting: %q", name, c.Knobs.PoolDegraded[p.name])
	}
	return report
}

// brokenHost is the host of a pool that cannot be changed; none in a pool that is not degraded.
func (c *Cluster) brokenHost(pool string) string {
	if c.Knobs.PoolDegraded[pool] == "" {
		return ""
	}
	if name := c.behind(c.pool(pool)); name != "" {
		return name
	}
	for _, host := range c.hostsOf(pool) {
		if host.Node {
			return host.Name
		}
	}
	return ""
}

// brokenPool is a required pool that is degraded.
func (c *Cluster) brokenPool() *pool {
	for _, p := range c.required() {
		if c.brokenHost(p.name) != "" {
			return p
		}
	}
	return nil
}

// reportMachineConfig adds what pools make of the operator: a required pool that is degraded degrades it, one that is paused holds it up,
// and a pool that is degraded, or whose hosts get another configuration, is against another minor version.
func (c *Cluster) reportMachineConfig(report *Operator) {
	if p := c.brokenPool(); p != nil {
		report.DegradedReason = "RequiredPoolsFailed"
		report.Degraded = fmt.Sprintf("Failed to resync %s because: error during syncRequiredMachineConfigPools: MachineConfigPool %s is "+
			"degraded: %s", c.target.Version, p.name, c.reportPool(p).Failure)
	}
	if report.Progressing != "" {
		report.Progressing += c.paused()
	}
	var degraded, updating bool
	for _, p := range c.pools {
		degraded = degraded || c.brokenHost(p.name) != ""
		updating = updating || !c.has(p) && !c.in.Paused[p.name]
	}
	switch {
	case report.NotUpgradeable != "":
	case degraded:
		report.NotUpgradeableReason = "DegradedPool"
		report.NotUpgradeable = "One or more machine config pools are degraded, please see `oc get mcp` for further details and resolve before " +
			"upgrading"
	case updating:
		report.NotUpgradeableReason = "PoolUpdating"
		report.NotUpgradeable = "One or more machine config pools are updating, please see `oc get mcp` for further details"
	}
}

// paused names the required pools that are paused and behind.
func (c *Cluster) paused() string {
	var names []string
	for _, p := range c.required() {
		if c.in.Paused[p.name] && !c.has(p) {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(": error required MachineConfigPool %s is paused and cannot sync until it is unpaused", strings.Join(names, ", "))
}
