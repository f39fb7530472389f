// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"net"
	"slices"
	"strconv"
	"time"
)

// Member is a member of the etcd cluster.
type Member struct {
	// ID is above 2⁵³, as the ids of most real members are.
	ID uint64
	// Name and ClientURL are empty as long as the member has not started. PeerURL always has the host's address.
	Name, PeerURL, ClientURL string
	Learner, Started         bool
	// Healthy says that the member has started and answers, Leader that it leads.
	Healthy, Leader bool
}

// member is what the cluster knows of one of its members.
type member struct {
	id      uint64
	name    string
	address string
	learner bool
	// up says that the member was healthy in the last tick, upSince from when on; the zero time is long ago.
	up      bool
	upSince time.Time
}

// started is etcd's rule: a member writes its name when it starts for the first time, and the name stays when it dies.
func (m *member) started() bool { return m.name != "" }

func (m *member) peerURL() string { return "https://" + net.JoinHostPort(m.address, "2380") }

func (m *member) clientURL() string {
	if !m.started() {
		return ""
	}
	return clientURL(m.address)
}

func clientURL(address string) string { return "https://" + net.JoinHostPort(address, "2379") }

func hexID(id uint64) string { return strconv.FormatUint(id, 16) }

// Members are the members in the order in which etcd lists them, by ID.
func (c *Cluster) Members() []Member {
	out := make([]Member, 0, len(c.members))
	for _, m := range c.members {
		out = append(out, Member{
			ID: m.id, Name: m.name, PeerURL: m.peerURL(), ClientURL: m.clientURL(), Learner: m.learner,
			Started: m.started(), Healthy: c.healthy(m), Leader: m.id == c.leader,
		})
	}
	return out
}

// Quorum reports whether enough voters are healthy. Without it the API of the cluster is gone.
func (c *Cluster) Quorum() bool {
	voters := c.voters()
	healthy := 0
	for _, m := range voters {
		if c.healthy(m) {
			healthy++
		}
	}
	if c.fenced {
		return healthy > 0
	}
	return len(voters) > 0 && healthy >= quorum(len(voters))
}

func quorum(voters int) int { return voters/2 + 1 }

// healthy reports whether a member answers: its host runs, and neither a fault nor a restart keeps it from that.
func (c *Cluster) healthy(m *member) bool {
	host := c.hostOf(m)
	if !m.started() || host == "" || !c.hosts[host].Running || c.Faults.Sick[host] {
		return false
	}
	return !c.now.Before(c.machines[host].restarting)
}

// hostOf is the host that has the member's data; none when the host was installed again.
func (c *Cluster) hostOf(m *member) string {
	for _, name := range c.names() {
		if c.machines[name].member == m.id {
			return name
		}
	}
	return ""
}

func (c *Cluster) voters() []*member {
	return slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return m.learner })
}

func (c *Cluster) unhealthy() []*member { return slices.DeleteFunc(slices.Clone(c.members), c.healthy) }

func (c *Cluster) member(id uint64) *member {
	return c.find(func(m *member) bool { return m.id == id })
}

func (c *Cluster) memberAt(address string) *member {
	return c.find(func(m *member) bool { return m.address == address })
}

func (c *Cluster) find(matches func(*member) bool) *member {
	index := slices.IndexFunc(c.members, matches)
	if index < 0 {
		return nil
	}
	return c.members[index]
}

// insert keeps the members in etcd's order.
func (c *Cluster) insert(m *member) {
	c.members = append(c.members, m)
	slices.SortFunc(c.members, func(a, b *member) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
}

// remove takes a member out. Its host finds out by itself.
func (c *Cluster) remove(id uint64) {
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m.id == id })
	c.index++
	c.elect()
}

// noteHealth remembers since when members are healthy, for etcd's health interval.
func (c *Cluster) noteHealth() {
	for _, m := range c.members {
		healthy := c.healthy(m)
		if healthy && !m.up {
			m.upSince = c.now
		}
		m.up = healthy
	}
}

// connected reports whether etcd counts a member as active: it has been up for longer than the health interval.
func (c *Cluster) connected(m *member) bool {
	return c.healthy(m) && c.now.Sub(m.upSince) > c.options.HealthInterval
}

// elect makes a healthy voter the leader when there is none. A cluster without quorum has no leader.
func (c *Cluster) elect() {
	if !c.Quorum() {
		c.leader = 0
		return
	}
	if m := c.member(c.leader); m != nil && c.healthy(m) {
		return
	}
	for _, m := range c.voters() {
		if c.healthy(m) {
			c.leader = m.id
			c.term++
			return
		}
	}
}
