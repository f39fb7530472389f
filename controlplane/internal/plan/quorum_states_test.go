// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// memberKinds are all that a member of etcd can be, each with a letter for the name of a state.
var memberKinds = []struct {
	letter string
	make   func(n int) workload.Member
}{
	{"H", voter},
	{"D", dead},
	{"U", unstarted},
	{"h", func(n int) workload.Member { return learner(voter(n)) }},
	{"d", func(n int) workload.Member { return learner(dead(n)) }},
	{"u", func(n int) workload.Member { return learner(unstarted(n)) }},
}

// etcdState is a state of etcd in which one Machine is being deleted.
type etcdState struct {
	// kinds are indices of memberKinds, in ascending order.
	kinds []int
	// target is the number of the member whose Machine is deleted; nodeless: that Machine has no Node; runs: its Node is ready.
	target   int
	nodeless bool
	runs     bool
	stable   bool
	// restarts: the hosts are restarted one after the other.
	restarts bool
	replicas int
}

func (s etcdState) String() string {
	var letters strings.Builder
	for _, kind := range s.kinds {
		letters.WriteString(memberKinds[kind].letter)
	}
	return fmt.Sprintf("%s target %d nodeless %t runs %t stable %t restarts %t replicas %d", letters.String(), s.target, s.nodeless, s.runs,
		s.stable, s.restarts, s.replicas)
}

// etcdStates are all states of one to five members.
func etcdStates() []etcdState {
	var states []etcdState
	var extend func(kinds []int)
	extend = func(kinds []int) {
		for target := range kinds {
			// Of a Machine without a Node nobody knows whether its host runs.
			for _, node := range []etcdState{{nodeless: true}, {}, {runs: true}} {
				for variant := range 12 {
					states = append(states, etcdState{
						kinds: slices.Clone(kinds), target: target, nodeless: node.nodeless, runs: node.runs, stable: variant&1 == 0,
						restarts: variant&2 == 0, replicas: 3 + variant/4,
					})
				}
			}
		}
		if len(kinds) == 5 {
			return
		}
		for kind := range memberKinds {
			if len(kinds) == 0 || kind >= kinds[len(kinds)-1] {
				extend(append(slices.Clone(kinds), kind))
			}
		}
	}
	extend(nil)
	return states
}

// etcdWorld is an etcd whose hosts come and go.
type etcdWorld struct {
	etcd     plan.Etcd
	replicas int
	leaving  []plan.Leaving
	next     int
}

func (s etcdState) world() *etcdWorld {
	w := &etcdWorld{etcd: plan.Etcd{Stable: s.stable}, replicas: s.replicas, next: len(s.kinds)}
	if s.restarts { // Members that do not serve have not done so for longer than a host takes to restart.
		w.etcd.Restarts, w.etcd.Unwell = []string{"an upgrade"}, time.Hour
	}
	for n, kind := range s.kinds {
		w.etcd.Members = append(w.etcd.Members, memberKinds[kind].make(n))
	}
	target := leaves(s.target)
	target.Ready = s.runs
	if s.nodeless {
		target.Node = ""
	}
	w.leaving = []plan.Leaving{target}
	return w
}

// voters counts the members that vote, and those of them that serve.
func (w *etcdWorld) voters() (all, serving int) {
	for _, m := range w.etcd.Members {
		if !m.Learner {
			all++
		}
		if !m.Learner && m.Healthy {
			serving++
		}
	}
	return all, serving
}

// quorum reports whether enough members serve for etcd to answer.
func (w *etcdWorld) quorum() bool {
	all, serving := w.voters()
	return serving > all/2
}

// mayRestart reports whether etcd goes on to answer when the next host is restarted. None is while a member does not serve, because the
// machine-config operator waits for its host.
func (w *etcdWorld) mayRestart() bool {
	all, serving := w.voters()
	return len(w.etcd.Restarts) == 0 || w.etcd.Paused || serving < all || serving-1 > all/2
}

// others are the Machines that stay.
func (w *etcdWorld) others() []plan.EtcdHost {
	var hosts []plan.EtcdHost
	for _, m := range w.etcd.Members {
		n := int(m.ID)
		if !slices.ContainsFunc(w.leaving, func(l plan.Leaving) bool { return l.Machine == etcdHost(n).Machine }) {
			hosts = append(hosts, etcdHost(n))
		}
	}
	return hosts
}

// step carries out what is decided.
func (w *etcdWorld) step() plan.LeavingDecision {
	d := plan.DecideLeaving(w.etcd, w.leaving, w.others(), nil)
	if d.Remove != nil {
		w.etcd.Members = slices.DeleteFunc(w.etcd.Members, func(m workload.Member) bool { return m.ID == d.Member.ID })
		w.leaving = slices.DeleteFunc(w.leaving, func(l plan.Leaving) bool { return l.Machine == d.Remove.Machine })
	}
	for _, released := range d.Release {
		w.leaving = slices.DeleteFunc(w.leaving, func(l plan.Leaving) bool { return l.Machine == released.Machine })
	}
	return d
}

// heal is what others do meanwhile: the Machines of members that do not serve are deleted, a learner gets its vote, the operator of etcd
// brings its revision to all hosts and adds the host of a new Machine once every member serves, restarts of hosts end then, and a user
// pauses those that do not.
func (w *etcdWorld) heal() {
	w.etcd.Unwell += 2 * time.Minute
	well := true
	for i, m := range w.etcd.Members {
		n := int(m.ID)
		switch {
		case !m.Healthy:
			well = false
			if !slices.ContainsFunc(w.leaving, func(l plan.Leaving) bool { return l.Machine == etcdHost(n).Machine }) {
				w.leaving = append(w.leaving, leaves(n))
			}
		case m.Learner:
			well = false
			w.etcd.Members[i].Learner = false
		}
	}
	drained := len(w.leaving) > 0 // Nobody restarts hosts while one is cordoned.
	w.etcd.Stable, w.etcd.Paused = w.etcd.Stable || well, !well || drained
	if well && !drained {
		w.etcd.Restarts = nil
	}
	if staying := len(w.etcd.Members) - len(w.leaving); well && staying < w.replicas {
		w.etcd.Members = append(w.etcd.Members, learner(voter(w.next)))
		w.next++
	}
}

// healed reports whether nobody leaves any more and there are as many voters that serve as there should be.
func (w *etcdWorld) healed() bool {
	all, serving := w.voters()
	return len(w.leaving) == 0 && all == len(w.etcd.Members) && serving == all && all >= w.replicas
}

// TestContractQuorum goes through every state of up to five members, and every Machine that may be deleted in it.
func TestContractQuorum(t *testing.T) {
	t.Run("KCP-24 no decision leaves fewer members that serve than a quorum, no state is stuck that replacements heal", func(t *testing.T) {
		g := NewWithT(t)
		var lost, removed, waited, longest int
		states := etcdStates()
		for _, state := range states {
			w := state.world()
			if !w.quorum() {
				lost++ // Nobody can read the members then, so nothing is decided.
				continue
			}
			d := w.step()
			g.Expect(w.quorum()).To(BeTrue(), "%s: etcd does not answer any more", state)
			if restarting := state.runs && !state.stable && !state.restarts && !d.Member.Healthy && !d.Member.Learner; restarting {
				g.Expect(d.Remove).To(BeNil(), "%s: the member may only be restarting", state)
			}
			if d.Remove != nil && !d.Member.Learner {
				g.Expect(w.mayRestart()).To(BeTrue(), "%s: the next restart of a host costs the quorum", state)
			}
			removed, waited = removed+count(d.Remove != nil), waited+len(d.Waiting)
			steps := 0
			for ; !w.healed(); steps++ {
				g.Expect(steps).To(BeNumerically("<", 30), "%s is stuck with %+v, and %+v leaving: %v", state, w.etcd.Members, w.leaving, d.Waiting)
				w.heal()
				d = w.step()
				g.Expect(w.quorum()).To(BeTrue(), "%s: etcd does not answer any more", state)
			}
			longest = max(longest, steps)
		}
		t.Logf("%d states, %d of them without a quorum; the member is removed in %d and the Machine waits in %d; "+
			"the longest way to full strength has %d steps", len(states), lost, removed, waited, longest)
		g.Expect(removed+waited).To(Equal(len(states)-lost), "each state has one decision")
	})
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
