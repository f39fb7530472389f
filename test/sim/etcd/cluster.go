// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Host is a control-plane host as etcd and its operator see it.
type Host struct {
	// Name is the name of the host and of its Node, Address is its internal IPv4 or IPv6 address.
	Name, Address string
	// Disk identifies what is installed on the host. Another value is a host that was installed again: it has neither static
	// pods nor etcd's data, and may have the name and the address of the host before it.
	Disk string
	// Node says that a Node with the label master or arbiter exists, Deleting that it has a deletionTimestamp, Cordoned that it
	// is unschedulable, Ready that its condition Ready is True.
	Node, Deleting, Cordoned, Ready bool
	// Running says that the host has power and its kubelet runs. Static pods run then, also without a Node.
	Running bool
}

// Options are how long things take. A delay of zero is one tick.
type Options struct {
	// Add is how long the operator takes to add a host as a learner, Start how long an added member takes to start, Promote how
	// long a started learner takes to become a voter.
	Add, Start, Promote time.Duration
	// Rejoin is how long etcd takes from its removal to the container that waits to be added again.
	Rejoin time.Duration
	// Endpoints is how long the operator takes to write a change of voters to etcd-endpoints, Revision how long to make a new
	// revision, Install how long an installer pod takes on one node.
	Endpoints, Revision, Install time.Duration
	// Restart is how long a member is unhealthy when its static pod gets a new revision. With zero it stays healthy.
	Restart time.Duration
	// PodGC is how long the pods of a deleted Node are still seen: 40 to 60 seconds in a real cluster.
	PodGC time.Duration
	// DegradedInertia is how long a condition is True before ClusterOperator etcd becomes Degraded.
	DegradedInertia time.Duration
	// HealthInterval is how long etcd wants to be connected to a member before it counts it; zero is etcd's 5 seconds.
	HealthInterval time.Duration
	// FirstRevision is latestAvailableRevision at the end of the installation; zero is 7.
	FirstRevision int32
}

// Cluster is the etcd of one installed cluster with its operator. It is not safe for concurrent use.
type Cluster struct {
	// Faults may be changed at any time.
	Faults Faults

	options Options
	random  *rand.Rand
	tick    int
	now     time.Time
	marks   map[string]mark

	hosts    map[string]Host
	machines map[string]*machine

	id, term, index, leader uint64
	members                 []*member

	latest     int32
	nodes      []NodeStatus
	revisions  map[int32]revision
	endpoints  map[string]string
	conditions []Condition
	// unsafe is why the operator makes no new revision.
	unsafe string
	// release is the image of the release from which static pods are made.
	release string
	// single says that the cluster was installed with one host, whose operator asks for no quorum. fenced says that it was installed with
	// two, of which Pacemaker keeps one alive: the operator leaves the members to it.
	single, fenced bool
}

// mark is when something was first seen that has an effect later.
type mark struct {
	tick int
	at   time.Time
}

// New returns the etcd of a cluster that has no member before Bootstrap. The seed decides the ids.
func New(seed uint64, options Options) *Cluster {
	options.HealthInterval = cmp.Or(options.HealthInterval, 5*time.Second)
	options.FirstRevision = cmp.Or(options.FirstRevision, 7)
	c := &Cluster{
		options: options, random: rand.New(rand.NewPCG(seed, seed)), marks: map[string]mark{},
		hosts: map[string]Host{}, machines: map[string]*machine{}, revisions: map[int32]revision{}, endpoints: map[string]string{},
	}
	c.id = c.newID()
	return c
}

// Release gives the operator a release, by its image: another one makes a new revision, which restarts every member once.
func (c *Cluster) Release(image string) { c.release = image }

// Updated reports whether every Node runs the latest revision, and that is made from what there is now.
func (c *Cluster) Updated() bool { return c.stable() && c.content() == c.revisions[c.latest].content }

// Bootstrap makes the hosts of the installation started voters, with static pods of the first revision.
func (c *Cluster) Bootstrap(hosts []Host) {
	c.observe(hosts)
	c.single, c.fenced = len(hosts) == 1, len(hosts) == 2 //nolint:mnd // a second host without an arbiter needs fencing
	c.latest, c.term = c.options.FirstRevision, 2
	for _, name := range c.names() {
		m := &member{id: c.newID(), name: name, address: c.hosts[name].Address, up: true}
		c.insert(m)
		c.machines[name].installed, c.machines[name].member = c.latest, m.id
		c.nodes = append(c.nodes, NodeStatus{Name: name, Current: c.latest})
	}
	c.elect()
	c.endpoints = c.voterAddresses()
	c.keepRevision()
	c.observePods()
	c.report()
}

// Tick lets every container and every controller of the operator do its next step. The time never goes back.
func (c *Cluster) Tick(now time.Time, hosts []Host) {
	c.tick++
	c.now = now
	c.index++
	c.observe(hosts)
	c.runContainers()
	c.noteHealth()
	c.elect()
	if !c.Quorum() {
		return // Without etcd there is no API: the operator does nothing, and nobody sees what it would say.
	}
	c.observePods()
	c.syncNodes()
	c.scale()
	c.syncEndpoints()
	c.syncRevision()
	c.install()
	c.report()
}

// observe remembers the hosts. One that is left out has no power and no Node.
func (c *Cluster) observe(hosts []Host) {
	before := c.hosts
	c.hosts = map[string]Host{}
	for _, host := range hosts {
		// Of a Node that outlives its host nothing else is known: what was installed on it is where it was.
		if known := c.machines[host.Name]; known != nil && host.Disk == "" {
			host.Disk = known.disk
		}
		c.hosts[host.Name] = host
		if m := c.machines[host.Name]; m == nil || m.disk != host.Disk {
			c.machines[host.Name] = &machine{disk: host.Disk}
		}
	}
	for name, host := range before {
		if _, known := c.hosts[name]; !known {
			c.hosts[name] = Host{Name: name, Address: host.Address, Disk: host.Disk}
		}
	}
}

// names are the hosts' in alphabetical order, in which everything here goes through them.
func (c *Cluster) names() []string { return slices.Sorted(maps.Keys(c.hosts)) }

// newID returns an id that a JSON parser with floating-point numbers reads wrongly.
func (c *Cluster) newID() uint64 { return c.random.Uint64() | 1<<54 | 1 }

// passed reports whether what key names has held for the delay, and at least since the tick before. When it has, the next time
// counts anew.
func (c *Cluster) passed(key string, holds bool, delay time.Duration) bool {
	if !holds {
		delete(c.marks, key)
		return false
	}
	first, seen := c.marks[key]
	if !seen {
		c.marks[key] = mark{c.tick, c.now}
		return false
	}
	if first.tick == c.tick || c.now.Sub(first.at) < delay {
		return false
	}
	delete(c.marks, key)
	return true
}
