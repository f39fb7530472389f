// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// machineConfig is the operator that comes last, because it restarts the hosts.
const machineConfig = "machine-config"

// order is which operators come before the others, one step after the other.
var order = map[string]int{"etcd": 1, "kube-apiserver": 2, "kube-controller-manager": 3, "kube-scheduler": 3, machineConfig: 5}

const others = 4

// operator is how far an operator is on its way to the target.
type operator struct {
	name string
	// release is what it has, toward the image of the release that it has begun with.
	release Release
	toward  string
	started time.Time
	// mixed says that it had begun with a release that was given up then: its operands may have either.
	mixed bool
}

// Operator is what an operator reports, as far as a release concerns it.
type Operator struct {
	Name, Version string
	// Progressing is what it does, "" for nothing. Degraded is what is wrong with it, NotUpgradeable why it wants no other minor version.
	Progressing, Degraded, NotUpgradeable string
	// DegradedReason and NotUpgradeableReason are the reasons of these conditions.
	DegradedReason, NotUpgradeableReason string
}

// waves are the operators in the order in which they get a release; those of one wave get it at once.
func waves(names []string) [][]string {
	rank := func(name string) int { return cmp.Or(order[name], others) }
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var out [][]string
	for _, name := range sorted {
		if last := len(out) - 1; last >= 0 && rank(out[last][0]) == rank(name) {
			out[last] = append(out[last], name)
			continue
		}
		out = append(out, []string{name})
	}
	return out
}

// updateOperators lets the operators of the first wave that is not done go on. When all are done, the cluster has its target.
func (c *Cluster) updateOperators() {
	if c.reconciling() {
		return
	}
	for _, wave := range c.waves {
		waiting := false
		for _, o := range wave {
			if !c.hasTarget(o) {
				waiting = true
				c.updateOperator(o)
			}
		}
		if waiting {
			return
		}
	}
	now := c.stamp()
	c.history[0].State, c.history[0].CompletionTime = configv1.CompletedUpdate, &now
	c.installed = c.target
	c.pool(Worker).target = c.target
}

// updateOperator is one step of an operator. machine-config is done when the pools are that the cluster cannot be without.
func (c *Cluster) updateOperator(o *operator) {
	if o.toward != c.target.Image {
		o.toward, o.started = c.target.Image, c.now
		return
	}
	delay, set := c.Knobs.Delays[o.name]
	if !set {
		delay = c.options.Operator
	}
	held := c.Knobs.Stuck[o.name] || c.in.Busy[o.name] || c.now.Sub(o.started) < delay || c.degraded(o.name)
	if o.name == machineConfig {
		held = !c.rollOut() || held
	}
	if !held {
		o.release, o.mixed = c.target, false
	}
}

// hasTarget reports whether an operator and all its operands have the target.
func (c *Cluster) hasTarget(o *operator) bool { return o.release.Image == c.target.Image && !o.mixed }

// underWay reports whether an operator has begun with the target and is not done.
func (c *Cluster) underWay(o *operator) bool {
	return !c.reconciling() && o.toward == c.target.Image && !c.hasTarget(o)
}

// Toward is the image of the release that the operands of an operator should have.
func (c *Cluster) Toward(name string) string {
	for _, wave := range c.waves {
		for _, o := range wave {
			if o.name == name {
				return o.toward
			}
		}
	}
	return ""
}

// Operators are the reports of all operators, in the order in which they get a release.
func (c *Cluster) Operators() []Operator {
	var out []Operator
	for _, wave := range c.waves {
		for _, o := range wave {
			out = append(out, c.operator(o))
		}
	}
	return out
}

func (c *Cluster) operator(o *operator) Operator {
	report := Operator{Name: o.name, Version: o.release.Version}
	if c.underWay(o) {
		report.Progressing = "Working towards " + c.target.Version
	}
	if message := c.Knobs.Degraded[o.name]; message != "" {
		report.Degraded, report.DegradedReason = message, "OperandDegraded"
	}
	if message := c.Knobs.NotUpgradeable[o.name]; message != "" {
		report.NotUpgradeable, report.NotUpgradeableReason = message, "NotUpgradeable"
	}
	if o.name == machineConfig {
		c.reportMachineConfig(&report)
	}
	return report
}

// degraded reports whether an operator says so of itself.
func (c *Cluster) degraded(name string) bool {
	return c.Knobs.Degraded[name] != "" || c.in.Degraded[name] || name == machineConfig && c.brokenPool() != nil
}

// degradedOperators are the names of the operators that are degraded, in alphabetical order.
func (c *Cluster) degradedOperators() []string {
	var out []string
	for _, o := range c.Operators() {
		if c.degraded(o.Name) {
			out = append(out, o.Name)
		}
	}
	slices.Sort(out)
	return out
}

// waitedFor are the operators that the update waits for, and those of them that take longer than usual.
func (c *Cluster) waitedFor() (waiting, slow []string) {
	for _, wave := range c.waves {
		for _, o := range wave {
			if !c.underWay(o) {
				continue
			}
			waiting = append(waiting, o.name)
			usual := c.options.Slow
			if o.name == machineConfig {
				usual = c.options.SlowMachineConfig
			}
			if c.now.Sub(o.started) >= usual {
				slow = append(slow, o.name)
			}
		}
	}
	return waiting, slow
}

// done is how many of all manifests of the target are applied: a release has about a hundred for each operator.
func (c *Cluster) done() (done, all int) {
	const manifests = 100
	all = manifests / 10
	done = all
	for _, wave := range c.waves {
		for _, o := range wave {
			all += manifests
			if c.hasTarget(o) {
				done += manifests
			}
		}
	}
	return done, all
}
