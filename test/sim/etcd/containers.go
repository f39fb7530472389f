// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"maps"
	"slices"
	"time"
)

// machine is what the disk of a host has.
type machine struct {
	disk string
	// installed is the revision of the static pod, 0 when there is none.
	installed int32
	// member is the member whose data the disk has, 0 when etcd waits to be added.
	member uint64
	// restarting is until when etcd restarts with a new revision.
	restarting time.Time
	// silent is since when the Node has not been ready; the zero time when it is.
	silent time.Time
	pod    *Pod
}

// Pod is the mirror pod etcd-<node> as the API shows it.
type Pod struct {
	Name, Node string
	Revision   int32
	// Running and EtcdReady are the state of container etcd. Running and not ready is an etcd that waits to be added or learns.
	Running, EtcdReady bool
	// Ready is the pod's condition: that of a silent host is set to False, while its container statuses stay.
	Ready bool
}

// Guard is the pod etcd-guard-<node> that the disruption budget counts.
type Guard struct {
	Name, Node string
	// Ready follows the readiness of etcd on the same node.
	Ready bool
	// Remade says that the operator makes the pod again when it is evicted. It does not on a cordoned Node.
	Remade bool
}

// Pods are the mirror pods of etcd that the API has, in the order of their names.
func (c *Cluster) Pods() []Pod {
	var out []Pod
	for _, name := range c.names() {
		if pod := c.machines[name].pod; pod != nil {
			out = append(out, *pod)
		}
	}
	return out
}

// Guards are the guard pods that the operator wants, and MinAvailable of their disruption budget.
func (c *Cluster) Guards() (guards []Guard, minAvailable int) {
	for _, node := range c.nodeNames() {
		host, pod := c.hosts[node], c.machines[node].pod
		if pod != nil {
			guards = append(guards, Guard{Name: "etcd-guard-" + node, Node: node, Ready: pod.Ready, Remade: !host.Cordoned})
		}
	}
	return guards, max(len(c.nodes)-1, 0)
}

// Endpoints is the data of ConfigMap etcd-endpoints: the addresses of the voters by their hexadecimal ids.
func (c *Cluster) Endpoints() map[string]string { return maps.Clone(c.endpoints) }

// runContainers lets the etcd of every running host do its next step. Static pods run without a Node too.
func (c *Cluster) runContainers() {
	for _, name := range c.names() {
		host, machine := c.hosts[name], c.machines[name]
		runs := host.Running && machine.installed > 0
		removed := runs && machine.member != 0 && c.member(machine.member) == nil
		// A removed member exits. Its container starts again, moves the data away and waits to be added.
		if c.passed("rejoin/"+name, removed, c.options.Rejoin) {
			machine.member = 0
		}
		added := c.memberAt(host.Address)
		joins := runs && machine.member == 0 && added != nil && !added.started() && c.Quorum()
		if c.passed("start/"+name, joins, c.options.Start) {
			added.name, machine.member = name, added.id
		}
	}
}

// waits reports whether the container etcd of a host runs and waits to be added.
func (c *Cluster) waits(name string) bool {
	pod := c.machines[name].pod
	return pod != nil && pod.Running && !pod.EtcdReady
}

// observePods brings the mirror pods to the API.
func (c *Cluster) observePods() {
	for _, name := range c.names() {
		host, machine := c.hosts[name], c.machines[name]
		collected := c.passed("gc/"+name, !host.Node && machine.pod != nil, c.options.PodGC)
		switch {
		case collected:
			machine.pod = nil
		case host.Node && host.Running && machine.installed > 0:
			machine.pod = c.mirrorPod(name)
		case machine.pod != nil && !host.Ready:
			machine.pod.Ready = false
		}
	}
}

func (c *Cluster) mirrorPod(name string) *Pod {
	machine := c.machines[name]
	m := c.member(machine.member)
	// A learner refuses what its readiness probe asks.
	ready := m != nil && !m.learner && c.healthy(m)
	return &Pod{
		Name: "etcd-" + name, Node: name, Revision: machine.installed,
		Running: m != nil || machine.member == 0, EtcdReady: ready, Ready: ready,
	}
}

// podEndpoints are the endpoints in the environment of container etcdctl on a host: the voters when its revision was made.
func (c *Cluster) podEndpoints(name string) []string {
	var out []string
	for _, address := range c.revisions[c.machines[name].installed].endpoints {
		out = append(out, clientURL(address))
	}
	slices.Sort(out)
	return out
}
