// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// minVoters is the number of voters that etcd needs before one may leave: two are left, and both have to serve until another host has
// joined.
const minVoters = 3

// restartWait is how long a member on a host that runs may not serve while members restart one after the other, before it is taken for one
// that does not come back. A restart of the static Pod takes a minute or two.
const restartWait = 5 * time.Minute

// hostRestartWait is the same for a member whose host may be restarting, because the hosts get another configuration or another release: a
// server takes 10 to 20 minutes.
const hostRestartWait = 30 * time.Minute

// Etcd is what a pass knows of the members of etcd.
type Etcd struct {
	// Members are those that etcd itself lists.
	Members []workload.Member
	// Stable: every host runs the newest revision of etcd's static pod, so that no member is about to restart.
	Stable bool
	// Unwell is for how long the operator of etcd has reported members that are not healthy; 0 while it reports none.
	Unwell time.Duration
	// Restarts say, in words, by what the hosts of the control plane are restarted one after the other; there are none while nothing does.
	Restarts []string
	// Paused: MachineConfigPool master is paused. Until somebody ends that, no host begins to get another configuration, whatever Restarts
	// say; one that had begun restarts all the same.
	Paused bool
	// Away is how many hosts of the control plane are cordoned, not ready, or being changed, and AwayNodes are the Nodes of which that is
	// seen. Drained are those of them that are ready, and cordoned for no other reason than that their Machines leave: nobody restarts them.
	Away               int
	AwayNodes, Drained []string
}

// awayBeside is how many hosts are away beside that of a Node, and may be restarting.
func (e Etcd) awayBeside(node string) int {
	away := max(e.Away, len(e.AwayNodes))
	for _, name := range e.AwayNodes {
		if name == node || slices.Contains(e.Drained, name) {
			away--
		}
	}
	return away
}

// Leaving is a Machine that is being deleted and that nothing but the hook of etcd keeps.
type Leaving struct {
	EtcdHost
	// Deleted is when its deletion began.
	Deleted time.Time
}

// LeavingDecision says what becomes of the Machines that wait in the hook of etcd (DESIGN D24).
type LeavingDecision struct {
	// Release are the Machines without a member: their Nodes are deleted, and their hooks go. AtOnce: their hooks go, and nothing else is
	// asked or done, because there is no cluster that anybody uses.
	Release []Leaving
	AtOnce  bool
	// Remove is the Machine whose member is removed in this pass; nil when none is. Member is that member. LeaderTo is the ID of the member
	// that becomes the leader before; 0 when Member does not lead.
	Remove   *Leaving
	Member   workload.Member
	LeaderTo uint64
	// Stray is a member that nobody accounts for and that is removed in this pass; nil when there is none.
	Stray *workload.Member
	// Drain are the Machines whose Nodes may be drained now: their pre-drain hooks go.
	Drain []*clusterv1.Machine
	// Waiting says for each of the other Machines, by name, what it waits for. Voting are those of them whose members are known to vote.
	Waiting map[string]string
	Voting  []string
}

// DecideLeaving decides which member of etcd is removed next. others are the control-plane Machines that are not Leaving; inFlight names
// the Machines whose hook is gone and that still exist.
func DecideLeaving(etcd Etcd, leaving []Leaving, others []EtcdHost, inFlight []string) LeavingDecision {
	d := LeavingDecision{Waiting: map[string]string{}}
	var candidates []candidate
	for _, l := range leaving {
		member, problem := etcd.memberOf(l, append(hostsOf(leaving, l.Machine), others...))
		switch {
		case problem != "":
			d.Waiting[l.Machine] = problem
		case member == nil:
			d.Release = append(d.Release, l)
			inFlight = append(inFlight, l.Machine)
		default:
			candidates = append(candidates, candidate{Leaving: l, member: *member})
		}
	}
	slices.SortFunc(candidates, candidate.compare)
	for i := range candidates {
		c := &candidates[i]
		if why := etcd.refusal(c, d.Remove, inFlight); why != "" {
			d.Waiting[c.Machine], d.Voting = why, append(d.Voting, c.Machine)
			continue
		}
		d.Remove, d.Member = &c.Leaving, c.member
		if c.member.Leader {
			d.LeaderTo = etcd.successor(c.member)
		}
	}
	return d
}

// candidate is a Machine with the member that its host is.
type candidate struct {
	Leaving

	member workload.Member
}

// compare orders candidates: those that do not serve go first, then the Machine that has been deleted for longest.
func (c candidate) compare(other candidate) int {
	if serves, otherServes := c.member.Healthy && !c.member.Learner, other.member.Healthy && !other.member.Learner; serves != otherServes {
		if otherServes {
			return -1
		}
		return 1
	}
	return cmp.Or(c.Deleted.Compare(other.Deleted), cmp.Compare(c.Machine, other.Machine))
}

// hostsOf are the Machines of leaving but one.
func hostsOf(leaving []Leaving, but string) []EtcdHost {
	var hosts []EtcdHost
	for _, l := range leaving {
		if l.Machine != but {
			hosts = append(hosts, l.EtcdHost)
		}
	}
	return hosts
}

// refusal says why a member is not removed now; it is empty when it is. Only one voter goes at a time, and the next when the Machine of the
// one before is gone.
func (e Etcd) refusal(c *candidate, first *Leaving, inFlight []string) string {
	switch {
	case first != nil:
		return fmt.Sprintf("The member of Machine %s is removed first", first.Machine)
	case c.member.Learner:
		return "" // A learner has no vote.
	case len(inFlight) > 0:
		return fmt.Sprintf("Machine %s, which has left etcd, goes first", summary(inFlight))
	}
	if why := e.mayServeAgain(c.member, c.EtcdHost); why != "" {
		return why
	}
	return cmp.Or(e.unfit(c.member), e.heldByDrained(c))
}

// heldByDrained says that a member that serves waits until the hosts have restarted; it is empty when it may go. Its Machine is drained,
// and the machine-config operator restarts no host while another one is cordoned: each waits for the other until somebody pauses the pool.
// Then no host is restarted but one that was begun with, which is away beside the drained one.
func (e Etcd) heldByDrained(c *candidate) string {
	why := e.untilRestarted(c.member)
	switch {
	case why == "", e.Paused && e.awayBeside(c.member.Name) == 0:
		return ""
	case e.Paused:
		return e.othersAway(c.member)
	}
	return fmt.Sprintf("%s. The Node of Machine %s is cordoned, which may keep them from it: set spec.paused of MachineConfigPool master to "+
		"true until another host has joined", why, c.Machine)
}

// othersAway says that other hosts than that of a member are away while MachineConfigPool master is paused: one that has begun to get
// another configuration restarts all the same.
func (e Etcd) othersAway(member workload.Member) string {
	return fmt.Sprintf(
		"MachineConfigPool master is paused, and hosts beside that of member %s are cordoned, not ready, or being changed (%d): "+
			"one that has begun restarts all the same, and nobody leaves etcd before they are back",
		MemberName(member),
		e.awayBeside(member.Name),
	)
}

// mayServeAgain says of a member that does not serve that it may only be restarting; it is empty when it does serve, or does not come back.
// While the members or the hosts restart one after the other, two that are left would restart too, and one of two is no quorum.
func (e Etcd) mayServeAgain(member workload.Member, host EtcdHost) string {
	what, wait := "The members of etcd", time.Duration(0)
	switch {
	case member.Healthy || member.Learner:
		return ""
	case len(e.Restarts) > 0:
		what, wait = "The hosts", hostRestartWait
	case !e.Stable && host.Ready:
		wait = restartWait
	}
	if e.Unwell >= wait {
		return ""
	}
	return fmt.Sprintf("%s restart one after the other, and member %s does not serve: it is removed when that lasts longer than %.f minutes",
		what, MemberName(member), wait.Minutes())
}

// MayLose says why etcd cannot do without a voter; it is empty when it can. A member that serves is only given up by an etcd that is well
// in every way. One that does not serve is given up when those that are left are a quorum among themselves: nobody can join before it is
// gone.
func (e Etcd) MayLose(member workload.Member) string {
	return cmp.Or(e.unfit(member), e.untilRestarted(member))
}

// unfit is MayLose, but for restarts of hosts that a member which serves waits for.
func (e Etcd) unfit(member workload.Member) string {
	if member.Learner {
		return ""
	}
	voters, healthy, learners := e.count()
	left := voters - 1
	switch {
	case voters < minVoters:
		return fmt.Sprintf("etcd has %s: another host has to join before one leaves", members(voters, "voting member"))
	case !member.Healthy && healthy < quorum(left):
		return fmt.Sprintf("%d of %d voting members of etcd are healthy, and without this one the %d others need %d: "+
			"see \"etcd quorum is lost\" in the troubleshooting guide", healthy, voters, left, quorum(left))
	case !member.Healthy && left < minVoters:
		return e.whileRestarted(member)
	case !member.Healthy:
		return ""
	case healthy < voters:
		return "etcd has members that are not healthy, which have to recover or to leave first: " + e.unhealthy()
	case len(learners) > 0:
		return fmt.Sprintf("Member %s of etcd has no vote yet, and nobody leaves before it has one", summary(learners))
	case !e.Stable:
		return "The members of etcd restart one after the other, and nobody leaves before that ends"
	}
	return ""
}

// whileRestarted says why a dead member stays without which two are left: one of them may be about to restart. It is empty when none is.
func (e Etcd) whileRestarted(member workload.Member) string {
	switch {
	case len(e.Restarts) == 0:
		return ""
	case !e.Paused:
		return fmt.Sprintf("etcd would have %s while the hosts are restarted one after the other: set spec.paused of MachineConfigPool master "+
			"to true until another host has joined (%s)", members(minVoters-1, "voting member"), strings.Join(e.Restarts, "; "))
	case e.awayBeside(member.Name) > 0:
		return e.othersAway(member)
	}
	return ""
}

// untilRestarted says that a member that serves stays until the hosts have restarted; it is empty when none is restarted.
func (e Etcd) untilRestarted(member workload.Member) string {
	if member.Learner || !member.Healthy {
		return ""
	}
	return untilRestarted(e.Restarts)
}

// untilRestarted says that nobody leaves etcd before the restarts of the hosts have ended; it is empty when none is restarted.
func untilRestarted(restarts []string) string {
	if len(restarts) == 0 {
		return ""
	}
	return "The hosts are restarted one after the other, and nobody leaves before that ends: " + strings.Join(restarts, "; ")
}

// count returns the number of voters, of healthy voters, and the names of the members without a vote.
func (e Etcd) count() (voters, healthy int, learners []string) {
	for _, m := range e.Members {
		switch {
		case m.Learner:
			learners = append(learners, MemberName(m))
		case m.Healthy:
			voters, healthy = voters+1, healthy+1
		default:
			voters++
		}
	}
	return voters, healthy, learners
}

// quorum is the number of voters, out of all, that have to serve.
func quorum(voters int) int { return voters/2 + 1 }

// unhealthy names the members that do not serve.
func (e Etcd) unhealthy() string {
	var names []string
	for _, m := range e.Members {
		if !m.Healthy {
			names = append(names, MemberName(m))
		}
	}
	return summary(names)
}

// MemberName is a member's name for messages; one that has not started has an address only.
func MemberName(m workload.Member) string {
	return cmp.Or(m.Name, "the one at "+strings.Join(m.PeerHosts, ", "))
}

// members says how many there are, in words.
func members(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// successor is the member that leads after another: a healthy voter, the first by name; 0 when there is none.
func (e Etcd) successor(leader workload.Member) uint64 {
	var next *workload.Member
	for i, m := range e.Members {
		if m.ID == leader.ID || m.Learner || !m.Healthy {
			continue
		}
		if next == nil || m.Name < next.Name {
			next = &e.Members[i]
		}
	}
	if next == nil {
		return 0
	}
	return next.ID
}

// memberOf finds the member of a Machine; nil when it has none. A member that has started is known by its name and its address, one that
// has not by its address alone, and one that does not serve by its name alone when somebody deleted its Node. When they disagree, or
// another Machine has them too, problem says so, and nothing may be done: the wrong member would be removed.
func (e Etcd) memberOf(l Leaving, others []EtcdHost) (member *workload.Member, problem string) {
	for i, m := range e.Members {
		byName, byAddress := m.Name != "" && m.Name == l.Node, l.at(m)
		if !byName && !byAddress || byName != byAddress && accountsFor(others, m) {
			continue
		}
		if problem := l.disagreement(m, byName, byAddress, others); problem != "" {
			return nil, problem
		}
		if member != nil {
			return nil, fmt.Sprintf("Two members of etcd have addresses of Machine %s: %s and %s", l.Machine, MemberName(*member), MemberName(m))
		}
		member = &e.Members[i]
	}
	if member == nil && l.Node == "" {
		return nil, e.unclaimed(l, others)
	}
	return member, ""
}

// disagreement says why a member that has the name or an address of a Machine is not taken for its own; it is empty when it is.
func (l Leaving) disagreement(m workload.Member, byName, byAddress bool, others []EtcdHost) string {
	other := claimant(m, others)
	switch {
	case !byAddress && (m.Healthy || !l.Gone || other != ""):
		return fmt.Sprintf("Member %s of etcd has the name of Machine %s's Node, and its address %s is none of the Machine's: delete the "+
			"Machine, remove the member by hand if it is of its host, and then annotation %s from the Machine",
			m.Name, l.Machine, strings.Join(m.PeerHosts, ", "), controlplanev1.EtcdHookAnnotation)
	case m.Name != "" && !byName && l.Node != "":
		return fmt.Sprintf("Member %s of etcd has an address of Machine %s, and the Machine's Node is called %s", m.Name, l.Machine, l.Node)
	case other != "" && !byName:
		return fmt.Sprintf("Member %s of etcd has an address of Machine %s, and the name or an address of Machine %s too",
			MemberName(m), l.Machine, other)
	}
	return ""
}

// unclaimed says of a Machine without a Node that a member may be its own, because that is no other's. A host that has joined is not known
// by the Machine's addresses: they may be those that it had when it was inspected.
func (e Etcd) unclaimed(l Leaving, others []EtcdHost) string {
	for _, m := range e.Members {
		if claimant(m, others) == "" {
			return fmt.Sprintf("Machine %s has no Node, and member %s of etcd is of no other Machine: if it is of this one's host, label its Node "+
				"%s=<UID of the BareMetalHost>; if not, delete the Machine, and then annotation %s from it", l.Machine, MemberName(m),
				metal3.NodeUIDLabel, controlplanev1.EtcdHookAnnotation)
		}
	}
	return ""
}

// IsMember reports whether a Machine has a member among these.
func IsMember(members []workload.Member, l Leaving) bool {
	member, problem := Etcd{Members: members}.memberOf(l, nil)
	return member != nil || problem != ""
}

// Strays are the members that neither a control-plane Machine nor a Node accounts for: their hosts are gone, and while one of them counts,
// nobody can join. Those that serve are not among them, because a Machine that is about to be adopted may account for them.
func (e Etcd) Strays(hosts []EtcdHost) []workload.Member {
	return slices.DeleteFunc(slices.Clone(e.Members), func(m workload.Member) bool {
		return m.Healthy || slices.ContainsFunc(hosts, func(h EtcdHost) bool { return h.claims(m) })
	})
}
