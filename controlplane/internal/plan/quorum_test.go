// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// voter is a member of etcd that serves. Its number makes its ID, its name, which is that of its Node, and its address.
func voter(n int) workload.Member {
	return workload.Member{
		ID: uint64(n), Name: fmt.Sprintf("n%d", n), PeerHosts: []string{fmt.Sprintf("10.0.0.%d", n)}, Healthy: true,
	}
}

// dead is a member that does not serve.
func dead(n int) workload.Member {
	m := voter(n)
	m.Healthy = false
	return m
}

// learner is a member without a vote.
func learner(m workload.Member) workload.Member {
	m.Learner = true
	return m
}

// unstarted is a member whose host has not answered yet: it has no name.
func unstarted(n int) workload.Member {
	m := dead(n)
	m.Name = ""
	return m
}

// leads is a member that leads.
func leads(m workload.Member) workload.Member {
	m.Leader = true
	return m
}

// etcdHost is the Machine whose host is the member with this number.
func etcdHost(n int) plan.EtcdHost {
	m := voter(n)
	return plan.EtcdHost{Machine: fmt.Sprintf("m%d", n), Node: m.Name, Addresses: m.PeerHosts}
}

// leaves is that Machine while it is deleted. Those with a low number are deleted for longer.
func leaves(n int) plan.Leaving {
	return plan.Leaving{EtcdHost: etcdHost(n), Deleted: time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)}
}

// leavingCase is a state of etcd, and what is decided about the Machines that leave it.
type leavingCase struct {
	members []workload.Member
	// restarts: the members restart one after the other; unwell is for how long some have not served.
	restarts bool
	unwell   time.Duration
	leaving  []plan.Leaving
	others   []plan.EtcdHost
	inFlight []string
	// remove is the number of the member that is removed, leaderTo that of the one that leads afterwards; 0 for none.
	remove, leaderTo int
	// release are the Machines without a member.
	release []string
	// waiting are the others, with a part of what they wait for.
	waiting map[string]string
}

func (c leavingCase) check(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	d := plan.DecideLeaving(plan.Etcd{Members: c.members, Stable: !c.restarts, Unwell: c.unwell}, c.leaving, c.others, c.inFlight)
	g.Expect(d.Remove != nil).To(Equal(c.remove != 0))
	g.Expect(d.Member.ID).To(BeEquivalentTo(c.remove))
	g.Expect(d.LeaderTo).To(BeEquivalentTo(c.leaderTo))
	var released []string
	for _, l := range d.Release {
		released = append(released, l.Machine)
	}
	g.Expect(released).To(Equal(c.release))
	wanted := map[string]types.GomegaMatcher{}
	for machine, why := range c.waiting {
		wanted[machine] = ContainSubstring(why)
	}
	g.Expect(d.Waiting).To(HaveLen(len(wanted)), "%v", d.Waiting)
	for machine, why := range wanted {
		g.Expect(d.Waiting[machine]).To(why)
	}
}

func TestContractLeaving(t *testing.T) {
	running := leaves(3)
	running.Ready = true
	for name, c := range map[string]leavingCase{
		"KCP-24 one of three that serve": {
			members: []workload.Member{voter(1), voter(2), voter(3)}, leaving: []plan.Leaving{leaves(3)}, remove: 3,
		},
		"KCP-24 the leader hands over to a voter that serves": {
			members: []workload.Member{learner(dead(1)), dead(2), voter(5), voter(4), leads(dead(3)), voter(6)},
			leaving: []plan.Leaving{leaves(3)}, remove: 3, leaderTo: 4,
		},
		"a dead one of three": {
			members: []workload.Member{voter(1), voter(2), dead(3)}, leaving: []plan.Leaving{leaves(3)}, restarts: true, remove: 3,
		},
		"one on a host that runs, which may only be restarting": {
			members: []workload.Member{voter(1), voter(2), dead(3)}, leaving: []plan.Leaving{running}, restarts: true, unwell: 4 * time.Minute,
			waiting: map[string]string{"m3": "member n3 does not serve: it is removed when that lasts longer than 5 minutes"},
		},
		"one on a host that runs, which has not served for too long to be restarting": {
			members: []workload.Member{voter(1), voter(2), dead(3)}, leaving: []plan.Leaving{running}, restarts: true, unwell: 5 * time.Minute,
			remove: 3,
		},
		"one on a host that runs, while none restarts": {
			members: []workload.Member{voter(1), voter(2), dead(3)}, leaving: []plan.Leaving{running}, remove: 3,
		},
		"one of two dead ones of five": {
			members: []workload.Member{voter(1), voter(2), voter(3), dead(4), dead(5)}, leaving: []plan.Leaving{leaves(5)}, remove: 5,
		},
		"one of two dead ones of three": {
			members: []workload.Member{voter(1), dead(2), dead(3)}, leaving: []plan.Leaving{leaves(3)},
			waiting: map[string]string{"m3": "1 of 3 voting members of etcd are healthy, and without this one the 2 others need 2"},
		},
		"one that serves beside a dead one": {
			members: []workload.Member{voter(1), voter(2), dead(3)}, leaving: []plan.Leaving{leaves(1)},
			waiting: map[string]string{"m1": "members that are not healthy, which have to recover or to leave first: n3"},
		},
		"one that serves beside one that has no vote yet": {
			members: []workload.Member{voter(1), voter(2), voter(3), learner(voter(4))}, leaving: []plan.Leaving{leaves(1)},
			waiting: map[string]string{"m1": "Member n4 of etcd has no vote yet"},
		},
		"one that serves while they restart": {
			members: []workload.Member{voter(1), voter(2), voter(3)}, restarts: true, leaving: []plan.Leaving{leaves(1)},
			waiting: map[string]string{"m1": "restart one after the other"},
		},
		"one of two": {
			members: []workload.Member{voter(1), dead(2)}, leaving: []plan.Leaving{leaves(2)},
			waiting: map[string]string{"m2": "etcd has 2 voting members: another host has to join before one leaves"},
		},
		"the only one": {
			members: []workload.Member{voter(1)}, leaving: []plan.Leaving{leaves(1)},
			waiting: map[string]string{"m1": "etcd has 1 voting member: another host"},
		},
		"one without a vote, beside a dead one": {
			members: []workload.Member{voter(1), voter(2), dead(3), learner(voter(4))}, leaving: []plan.Leaving{leaves(4)},
			inFlight: []string{"m5"}, remove: 4,
		},
	} {
		t.Run(name, c.check)
	}
}

// TestSeveralLeave: one voter leaves at a time, those that do not serve before the others.
func TestSeveralLeave(t *testing.T) {
	three := []workload.Member{voter(1), voter(2), voter(3)}
	for name, c := range map[string]leavingCase{
		"the one that is deleted for longest": {
			members: three, leaving: []plan.Leaving{leaves(2), leaves(1)}, remove: 1,
			waiting: map[string]string{"m2": "The member of Machine m1 is removed first"},
		},
		"the one that does not serve": {
			members: []workload.Member{voter(1), voter(2), dead(3)}, leaving: []plan.Leaving{leaves(1), leaves(3)}, remove: 3,
			waiting: map[string]string{"m1": "The member of Machine m3 is removed first"},
		},
		"none while a Machine exists that has left": {
			members: []workload.Member{voter(1), voter(2), voter(3), voter(4)}, leaving: []plan.Leaving{leaves(1)}, inFlight: []string{"m5"},
			waiting: map[string]string{"m1": "Machine m5, which has left etcd, goes first"},
		},
		"those that never joined all at once, and none beside them": {
			members: three, leaving: []plan.Leaving{leaves(1), leaves(8), leaves(9)}, release: []string{"m8", "m9"},
			waiting: map[string]string{"m1": "Machine m8, m9, which"},
		},
	} {
		t.Run(name, c.check)
	}
}

// TestDrainedMachineAndRestarts: hosts are to be restarted, and wait for a Node that is cordoned because its Machine leaves.
func TestDrainedMachineAndRestarts(t *testing.T) {
	etcd := plan.Etcd{Stable: true, Restarts: []string{"an upgrade"}, Members: []workload.Member{voter(1), voter(2), voter(3)}}
	decide := func(paused bool, away int, nodes ...string) plan.LeavingDecision {
		etcd.Paused, etcd.Away, etcd.AwayNodes = paused, away, nodes
		return plan.DecideLeaving(etcd, []plan.Leaving{leaves(1)}, []plan.EtcdHost{etcdHost(2), etcdHost(3)}, nil)
	}
	g := NewWithT(t)
	g.Expect(decide(false, 1, "n1").Waiting).
		To(HaveKeyWithValue("m1", "The hosts are restarted one after the other, and nobody leaves before that "+
			"ends: an upgrade. The Node of Machine m1 is cordoned, which may keep them from it: set spec.paused of MachineConfigPool master to "+
			"true until another host has joined"))
	others := "MachineConfigPool master is paused, and hosts beside that of member n1 are cordoned, not ready, or being changed (1): one " +
		"that has begun restarts all the same, and nobody leaves etcd before they are back"
	g.Expect(decide(true, 2, "n1").Waiting).To(HaveKeyWithValue("m1", others), "one is being restarted still")
	g.Expect(decide(true, 1, "n1", "n2").Waiting).To(HaveKeyWithValue("m1", others), "the pool has not said so yet")
	g.Expect(decide(true, 1).Waiting).To(HaveKeyWithValue("m1", others), "its own Node is there")
	g.Expect(decide(true, 1, "n1").Remove).To(HaveField("Machine", "m1"))
	etcd.Drained = []string{"n1", "n2"}
	g.Expect(decide(true, 2, "n1", "n2").Remove).To(HaveField("Machine", "m1"), "the other one was drained too")
	g.Expect(decide(true, 3, "n1", "n2").Waiting).To(HaveKeyWithValue("m1", others), "a third one is being restarted")
}

// inspected is that Machine while no Node is known to be its own: it has the address that its host had when it was inspected.
func inspected(n int) plan.Leaving {
	l := leaves(n)
	l.Node, l.Addresses = "", []string{fmt.Sprintf("172.22.0.%d", n)}
	return l
}

// TestMemberOfMachine: a member goes with a Machine when name and address say so, and nothing happens when they disagree.
func TestMemberOfMachine(t *testing.T) {
	four := []workload.Member{voter(1), voter(2), voter(3), voter(4)}
	nodeless, moved, shared, namesake := leaves(4), leaves(4), etcdHost(3), etcdHost(5)
	nodeless.Node = ""
	moved.Addresses = []string{"10.0.0.40"}
	gone := moved
	gone.Gone = true
	shared.Addresses = append(shared.Addresses, "10.0.0.4")
	namesake.Node = "n4"
	renamed := voter(5)
	renamed.Name = "n4"
	for name, c := range map[string]leavingCase{
		"by its address when it has not started": {
			members: []workload.Member{voter(1), voter(2), voter(3), unstarted(4)}, leaving: []plan.Leaving{leaves(4)}, remove: 4,
		},
		"nothing is known of its host, and a member is nobody's": {
			members: four, leaving: []plan.Leaving{{EtcdHost: plan.EtcdHost{Machine: "m4"}}},
			others:  []plan.EtcdHost{etcdHost(1), etcdHost(2), etcdHost(3)},
			waiting: map[string]string{"m4": "Machine m4 has no Node, and member n4 of etcd is of no other Machine"},
		},
		"it has no Node and the addresses of its inspection, and a member is nobody's": {
			members: four, leaving: []plan.Leaving{inspected(4)}, others: []plan.EtcdHost{etcdHost(1), etcdHost(2), etcdHost(3)},
			waiting: map[string]string{"m4": "label its Node metal3.io/uuid=<UID of the BareMetalHost>; if not, delete"},
		},
		"two have no Nodes and the addresses of their inspections": {
			members: four, leaving: []plan.Leaving{inspected(4), inspected(3)}, others: []plan.EtcdHost{etcdHost(1), etcdHost(2)},
			waiting: map[string]string{"m4": "member n3 of etcd is of no other Machine", "m3": "member n3 of etcd is of no other Machine"},
		},
		"it has no Node and the addresses of its inspection, and every member is somebody's": {
			members: four, leaving: []plan.Leaving{inspected(5)},
			others: []plan.EtcdHost{etcdHost(1), etcdHost(2), etcdHost(3), etcdHost(4)}, release: []string{"m5"},
		},
		"nothing is known of its host, and every member is somebody's": {
			members: four, leaving: []plan.Leaving{{EtcdHost: plan.EtcdHost{Machine: "m5"}}},
			others: []plan.EtcdHost{etcdHost(1), etcdHost(2), etcdHost(3), etcdHost(4)}, release: []string{"m5"},
		},
		"by an IPv6 address in another spelling": {
			members: []workload.Member{voter(1), voter(2), voter(3), {ID: 4, PeerHosts: []string{"fd00::4"}}},
			leaving: []plan.Leaving{{EtcdHost: plan.EtcdHost{Machine: "m4", Addresses: []string{"FD00:0:0::4"}}}}, remove: 4,
		},
		"by an address that another Machine has too": {
			members: []workload.Member{voter(1), voter(2), voter(3), unstarted(4)}, leaving: []plan.Leaving{leaves(4)},
			others: []plan.EtcdHost{shared},
			waiting: map[string]string{
				"m4": "the one at 10.0.0.4 of etcd has an address of Machine m4, and the name or an address of Machine m3 too",
			},
		},
		"by name and address, although another Machine has the address too": {
			members: four, leaving: []plan.Leaving{leaves(4)}, others: []plan.EtcdHost{shared}, remove: 4,
		},
		"by the name alone": {
			members: four, leaving: []plan.Leaving{moved},
			waiting: map[string]string{"m4": "Member n4 of etcd has the name of Machine m4's Node, and its address 10.0.0.4 is none of"},
		},
		"by the name alone, when it does not serve and somebody deleted its Node": {
			members: []workload.Member{voter(1), voter(2), voter(3), dead(4)}, leaving: []plan.Leaving{gone}, remove: 4,
		},
		"by the name alone, when it serves and somebody deleted its Node": {
			members: four, leaving: []plan.Leaving{gone},
			waiting: map[string]string{"m4": "remove the member by hand if it is of its host, and then annotation pre-terminate"},
		},
		"by the name alone, when somebody deleted its Node and another Machine has its address": {
			members: []workload.Member{voter(1), voter(2), voter(3), dead(4)}, leaving: []plan.Leaving{gone}, others: []plan.EtcdHost{shared},
			waiting: map[string]string{"m4": "its address 10.0.0.4 is none of the Machine's"},
		},
		"by the name alone, when it does not serve and its Node exists": {
			members: []workload.Member{voter(1), voter(2), voter(3), dead(4)}, leaving: []plan.Leaving{moved},
			waiting: map[string]string{"m4": "its address 10.0.0.4 is none of the Machine's"},
		},
		"by the name alone, which was given to another host": {
			members: []workload.Member{voter(1), voter(2), voter(3), renamed}, leaving: []plan.Leaving{leaves(4)},
			others: []plan.EtcdHost{namesake}, release: []string{"m4"},
		},
		"of two that share a name, the one at its address": {
			members: []workload.Member{voter(1), voter(2), renamed, dead(4)}, leaving: []plan.Leaving{leaves(4)},
			others: []plan.EtcdHost{namesake}, remove: 4,
		},
		"by the address alone, with another name": {
			members: []workload.Member{voter(1), voter(2), voter(3), renamed}, leaving: []plan.Leaving{leaves(5)},
			waiting: map[string]string{"m5": "Member n4 of etcd has an address of Machine m5, and the Machine's Node is called n5"},
		},
		"by the address alone, with no Node": {
			members: four, leaving: []plan.Leaving{nodeless}, remove: 4,
		},
		"by the address alone, with no Node, and with the name of another Machine's": {
			members: four, leaving: []plan.Leaving{nodeless}, others: []plan.EtcdHost{{Machine: "m5", Node: "n4", Addresses: []string{"10.0.0.5"}}},
			waiting: map[string]string{"m4": "the name or an address of Machine m5 too"},
		},
		"by an address that its host had before, of another Machine's member": {
			members: []workload.Member{voter(1), voter(2), voter(3)}, others: []plan.EtcdHost{etcdHost(3)},
			leaving: []plan.Leaving{{EtcdHost: plan.EtcdHost{Machine: "m4", Node: "n4", Addresses: []string{"10.0.0.4", "10.0.0.3"}}}},
			release: []string{"m4"},
		},
		"by the addresses of two": {
			members: []workload.Member{voter(1), voter(2), unstarted(3), unstarted(4)},
			leaving: []plan.Leaving{{EtcdHost: plan.EtcdHost{Machine: "m3", Node: "n3", Addresses: []string{"10.0.0.3", "10.0.0.4"}}}},
			waiting: map[string]string{"m3": "Two members of etcd have addresses of Machine m3: the one at 10.0.0.3 and the one at 10.0.0.4"},
		},
	} {
		t.Run(name, c.check)
	}
}

// TestStrays: only members that do not serve, and that neither a Machine nor a Node accounts for.
func TestStrays(t *testing.T) {
	g := NewWithT(t)
	etcd := plan.Etcd{Members: []workload.Member{voter(1), dead(2), dead(3), unstarted(4), dead(5)}}
	strays := etcd.Strays([]plan.EtcdHost{etcdHost(2), {Node: "n3"}})
	g.Expect(strays).To(Equal([]workload.Member{unstarted(4), dead(5)}))
}
