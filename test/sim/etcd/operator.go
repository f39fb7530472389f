// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// minimum is how many healthy members the operator's HAScalingStrategy wants.
const minimum = 3

// NodeStatus is an entry of the Etcd resource's status.nodeStatuses.
type NodeStatus struct {
	Name string
	// Current is the revision that runs, 0 for a Node that is new. Target is the one being installed, 0 for none.
	Current, Target int32
}

// revision is what the static pods of one revision were made from.
type revision struct {
	content   string
	endpoints map[string]string
	// nodes have certificates in it.
	nodes []string
}

// syncNodes keeps an entry for every Node of the control plane. A new one enters at revision 0.
func (c *Cluster) syncNodes() {
	c.nodes = slices.DeleteFunc(c.nodes, func(node NodeStatus) bool { return !c.hosts[node.Name].Node })
	known := c.nodeNames()
	for _, name := range c.names() {
		if c.hosts[name].Node && !slices.Contains(known, name) {
			c.nodes = append(c.nodes, NodeStatus{Name: name})
		}
	}
}

func (c *Cluster) nodeNames() []string {
	out := make([]string, 0, len(c.nodes))
	for _, node := range c.nodes {
		out = append(out, node.Name)
	}
	return out
}

// scale adds and promotes learners. It does nothing while any member is unhealthy, and one that has not started is. It never
// removes a member, because there is no Machine API.
func (c *Cluster) scale() {
	blocked := len(c.unhealthy()) > 0
	for _, name := range c.names() {
		host := c.hosts[name]
		wanted := !blocked && host.Node && !host.Deleting && c.memberAt(host.Address) == nil && c.waits(name)
		// etcd takes one learner at a time.
		if c.passed("add/"+name, wanted && !c.learns(), c.options.Add) {
			c.insert(&member{id: c.newID(), address: host.Address, learner: true})
			c.index++
			return
		}
	}
	c.promote(blocked)
}

// promote makes voters of the learners, if any Node of the control plane has none. The operator does not look whose Node it is.
func (c *Cluster) promote(blocked bool) {
	lacking := slices.ContainsFunc(c.nodeNames(), func(name string) bool {
		m := c.memberAt(c.hosts[name].Address)
		return m == nil || m.learner
	})
	for _, m := range c.members {
		ready := !blocked && lacking && m.learner && c.healthy(m) && !c.Faults.Learner[m.name]
		if c.passed("promote/"+hexID(m.id), ready, c.options.Promote) {
			m.learner = false
			c.index++
		}
	}
}

func (c *Cluster) learns() bool { return c.find(func(m *member) bool { return m.learner }) != nil }

func (c *Cluster) voterAddresses() map[string]string {
	out := map[string]string{}
	for _, m := range c.voters() {
		out[hexID(m.id)] = m.address
	}
	return out
}

func (c *Cluster) syncEndpoints() {
	wanted := c.voterAddresses()
	if c.passed("endpoints", !maps.Equal(wanted, c.endpoints), c.options.Endpoints) {
		c.endpoints = wanted
	}
}

// syncRevision makes a new revision when what static pods are made from has changed, if the operator finds that safe.
func (c *Cluster) syncRevision() {
	content := c.content()
	changed := content != c.revisions[c.latest].content
	c.unsafe = c.whyUnsafe()
	if c.passed("revision", changed && c.unsafe == "", c.options.Revision) {
		c.latest++
		c.keepRevision()
	}
}

// keepRevision remembers what the latest revision is made from.
func (c *Cluster) keepRevision() {
	c.revisions[c.latest] = revision{content: c.content(), endpoints: c.endpoints, nodes: c.nodeNames()}
}

// content is what a revision is made from: the release, the endpoints, and the certificates of every Node.
func (c *Cluster) content() string {
	out := []string{c.release}
	for _, id := range slices.Sorted(maps.Keys(c.endpoints)) {
		out = append(out, id+"="+c.endpoints[id])
	}
	for _, name := range slices.Sorted(slices.Values(c.nodeNames())) {
		out = append(out, name+"="+c.hosts[name].Address)
	}
	return strings.Join(out, " ")
}

// stable reports whether every Node runs the latest revision.
func (c *Cluster) stable() bool {
	return !slices.ContainsFunc(c.nodes, func(node NodeStatus) bool { return node.Current != c.latest })
}

// whyUnsafe is the operator's reason against a new revision. While revisions are not stable there is none, which is how a new
// Node gets one when only two members are left.
func (c *Cluster) whyUnsafe() string {
	total := len(c.members)
	healthy := total - len(c.unhealthy())
	switch {
	case c.single || c.fenced || !c.stable():
		return ""
	case healthy < minimum:
		return fmt.Sprintf("CheckSafeToScaleCluster found %d healthy member(s) out of the %d required by the HAScalingStrategy",
			healthy, minimum)
	case healthy <= quorum(total):
		return fmt.Sprintf("etcd cluster has quorum of %d and %d healthy members which is not fault tolerant: %s",
			quorum(total), healthy, c.dump())
	}
	return ""
}

// dump stands for the Go value that the operator prints at the end of its message.
func (c *Cluster) dump() string {
	var out []string
	for _, m := range c.members {
		out = append(out, fmt.Sprintf("{Member:ID:%d name:%q  Healthy:%t}", m.id, m.name, c.healthy(m)))
	}
	return "[" + strings.Join(out, " ") + "]"
}

// install brings the latest revision to one node at a time: first to the one in the worst state.
func (c *Cluster) install() {
	first := c.worst()
	for i := range c.nodes {
		at := (first + i) % len(c.nodes)
		node := &c.nodes[at]
		if node.Target > node.Current {
			c.progress(node)
			return
		}
		var previous *NodeStatus
		if i > 0 {
			previous = &c.nodes[(at+len(c.nodes)-1)%len(c.nodes)]
		}
		if node.Target = c.next(node, previous); node.Target != 0 {
			return
		}
	}
}

// worst is the node that is served first: one being installed, else one without a pod, else the one with the oldest pod that is
// not ready, else the one with the oldest revision.
func (c *Cluster) worst() int {
	if at := slices.IndexFunc(c.nodes, func(node NodeStatus) bool { return node.Target != 0 }); at >= 0 {
		return at
	}
	if at := slices.IndexFunc(c.nodes, func(node NodeStatus) bool { return c.machines[node.Name].pod == nil }); at >= 0 {
		return at
	}
	rank := func(node NodeStatus) int64 {
		pod := c.machines[node.Name].pod
		switch {
		case !pod.Ready:
			return int64(pod.Revision)
		case pod.Revision != node.Current:
			return math.MaxInt32 + int64(pod.Revision)
		}
		return 2*math.MaxInt32 + int64(node.Current)
	}
	worst := 0
	for at := range c.nodes {
		if rank(c.nodes[at]) < rank(c.nodes[worst]) {
			worst = at
		}
	}
	return worst
}

// next is the revision that a node should start, 0 for none. The first node starts the latest one, each other follows the node
// before it.
func (c *Cluster) next(node, previous *NodeStatus) int32 {
	switch {
	case previous == nil && node.Current != c.latest:
		return c.latest
	case previous != nil && previous.Target == 0 && previous.Current > node.Current:
		return previous.Current
	}
	return 0
}

// progress is one step of the installation on a node. A newer revision takes the place of the one being installed, and a node is
// done when its pod of that revision is ready.
func (c *Cluster) progress(node *NodeStatus) {
	host, machine := c.hosts[node.Name], c.machines[node.Name]
	if c.latest > node.Target {
		node.Target = c.latest
		return
	}
	// The installer waits for the certificates of a new node, which come with the next revision.
	missing := machine.installed != node.Target && slices.Contains(c.revisions[node.Target].nodes, node.Name)
	if c.passed(fmt.Sprintf("install/%s/%d", node.Name, node.Target), missing && host.Running, c.options.Install) {
		machine.installed = node.Target
		if c.options.Restart > 0 && machine.member != 0 {
			machine.restarting = c.now.Add(c.options.Restart)
		}
		return
	}
	if pod := machine.pod; pod != nil && pod.Ready && pod.Revision == node.Target {
		node.Current, node.Target = node.Target, 0
	}
}
