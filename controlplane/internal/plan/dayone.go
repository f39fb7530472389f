// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Host is an Agent that is bound to the control plane's ClusterDeployment.
type Host struct {
	// Name is the Agent's name, Machine that of the Machine that it is claimed for.
	Name, Machine string
	// Role is assisted.RoleMaster, assisted.RoleArbiter or assisted.RoleWorker.
	Role string
	// Ready: the Agent counts for the first installation and its Machine is not being deleted.
	Ready bool
	// Installing: its installation has begun, which the AgentClusterInstall may say a moment later.
	Installing bool
	// Lost: assisted-service does not hear from the host any more; while it is bound it blocks the installation (ASSISTED 8.2).
	Lost bool
	// Leaving: no living Machine claims the Agent, or its approval was taken back. It is no member of the first installation at any step.
	Leaving bool
}

// gone reports whether the host cannot be installed, although it is bound.
func (h Host) gone() bool { return h.Lost || h.Leaving }

// DayOne is all that decides about the first installation (DESIGN D8).
type DayOne struct {
	// Phase of the AgentClusterInstall.
	Phase assisted.Phase
	// Replicas and Workers are the numbers of hosts that Cluster API asks for.
	Replicas, Workers int
	// Arbiters is the number of arbiters without which nothing is installed: 1 beside two control-plane hosts that have no fencing, else 0.
	Arbiters int
	// WorkerWait is how long workers are waited for once all control-plane hosts are ready.
	WorkerWait time.Duration
	// WaitStarted is when that wait began; nil before.
	WaitStarted *time.Time
	// Closed: the set is fixed; Set are the names of its Agents.
	Closed bool
	Set    []string
	// UserHold: the user does not want the installation to begin yet.
	UserHold bool
	// Hold and Requirements are what the AgentClusterInstall says now.
	Hold         bool
	Requirements hiveext.ProvisionRequirements
	// Hosts are the bound Agents, in any order.
	Hosts []Host
	// Now is the time of the pass.
	Now time.Time
}

// DayOneAction is the one write that brings the first installation forward.
type DayOneAction string

const (
	// DayOneNothing: there is nothing to write now.
	DayOneNothing DayOneAction = ""
	// DayOneRequire: write Requirements to the held AgentClusterInstall. The wait for workers begins anew: other workers are waited for, or
	// the user holds the installation, which is no time to wait in.
	DayOneRequire DayOneAction = "Require"
	// DayOneStartWait: persist the time at which the wait for workers begins.
	DayOneStartWait DayOneAction = "StartWait"
	// DayOneClose: fix the set to Agents.
	DayOneClose DayOneAction = "Close"
	// DayOneUnbind: unbind Agents, which are not part of the first installation.
	DayOneUnbind DayOneAction = "Unbind"
	// DayOneStart: fix the set to Agents unless it is fixed, write Requirements, and clear the hold, in one patch.
	DayOneStart DayOneAction = "Start"
	// DayOneReopen: a control-plane host of the set is gone, or the user wants something else; forget the set and hold again, in one patch.
	DayOneReopen DayOneAction = "Reopen"
)

// DayOneStep is what is to be done now.
type DayOneStep struct {
	// Action is the write.
	Action DayOneAction
	// Agents are the names that Close, Unbind or Start are about, sorted.
	Agents []string
	// Requirements are what Require or Start write.
	Requirements hiveext.ProvisionRequirements
	// RequeueAfter is the rest of the wait for workers; 0 when only events matter.
	RequeueAfter time.Duration
	// Held: nothing but the user keeps the installation from beginning.
	Held bool
	// Note says why, for the log and events. Stage is what the condition says: it does not change with each host.
	Note, Stage string
}

// heldByUser is the Note of a step that waits for the user.
const heldByUser = "on hold until spec.install.holdInstallation is false"

// Next decides the next step. Nothing is done outside PhaseWaiting: the service refuses changes, or has said nothing yet.
func (d DayOne) Next() DayOneStep {
	if d.Phase != assisted.PhaseWaiting {
		return DayOneStep{}
	}
	if d.Closed {
		return d.nextClosed()
	}
	return d.nextOpen()
}

func (d DayOne) workers() int { return view.FirstWorkers(d.Replicas, d.Workers) }

func (d DayOne) nextOpen() DayOneStep {
	wanted := hiveext.ProvisionRequirements{ControlPlaneAgents: d.Replicas, WorkerAgents: d.workers()}
	masters, arbiters, workers := d.ready(assisted.RoleMaster), d.ready(assisted.RoleArbiter), d.ready(assisted.RoleWorker)
	note, stage := d.readyNote(len(masters), len(arbiters), len(workers)), d.Wanted()
	if d.Requirements != wanted || !d.Hold || d.UserHold && d.WaitStarted != nil {
		return DayOneStep{Action: DayOneRequire, Requirements: wanted, Note: note, Stage: stage}
	}
	if len(masters) < d.Replicas || len(arbiters) < d.Arbiters {
		return DayOneStep{Note: note, Stage: stage}
	}
	if d.UserHold {
		held := fmt.Sprintf("All %d control-plane hosts are ready; %s", d.Replicas, heldByUser)
		return DayOneStep{Held: true, Note: note + "; " + heldByUser, Stage: held} // Open: hosts may still join.
	}
	// The caller deletes Machines beyond the replicas first. If there is a host too many all the same, the first by name are as good as any.
	set := slices.Concat(masters[:d.Replicas], arbiters[:d.Arbiters])
	if d.Replicas > 1 {
		set = append(set, workers...)
	}
	sort.Strings(set)
	waits := fmt.Sprintf("All %d control-plane hosts are ready; the installation begins when %d workers are too, or after "+
		"spec.install.workerWaitTimeoutSeconds", d.Replicas, d.workers())
	switch {
	case len(workers) >= d.workers():
		return d.closing(set, note)
	case d.WaitStarted == nil:
		return DayOneStep{Action: DayOneStartWait, RequeueAfter: d.WorkerWait, Note: note, Stage: waits}
	}
	if left := d.WaitStarted.Add(d.WorkerWait).Sub(d.Now); left > 0 {
		return DayOneStep{RequeueAfter: left, Note: note, Stage: waits}
	}
	return d.closing(set, note)
}

// closing fixes the set, and begins the installation with the same patch when no other host is bound: one that is bound at the same moment
// is found by the next pass, and keeps the service from beginning until it is unbound. A host that takes no part is unbound first.
func (d DayOne) closing(set []string, note string) DayOneStep {
	d.Set = set
	counts, _, out := d.members()
	if len(out) > 0 {
		return DayOneStep{Action: DayOneClose, Agents: set, Note: note, Stage: d.Wanted()}
	}
	return DayOneStep{Action: DayOneStart, Agents: set, Requirements: counts, Note: startNote(counts), Stage: d.Wanted()}
}

// startNote says with which hosts the installation begins.
func startNote(counts hiveext.ProvisionRequirements) string {
	return fmt.Sprintf("%d control-plane hosts and %d workers are bound", counts.ControlPlaneAgents, counts.WorkerAgents)
}

// Wanted says what the installation waits for. It is the same whichever hosts are ready, also when all are: their Machines tell how far
// each is.
func (d DayOne) Wanted() string {
	arbiters := ""
	if d.Arbiters > 0 {
		arbiters = fmt.Sprintf(", %d arbiters", d.Arbiters)
	}
	return fmt.Sprintf("The installation begins when %d control-plane hosts%s and %d workers are ready", d.Replicas, arbiters, d.workers())
}

// readyNote says how many hosts are ready.
func (d DayOne) readyNote(masters, arbiters, workers int) string {
	third := ""
	if d.Arbiters > 0 {
		third = fmt.Sprintf(", %d of %d arbiters", arbiters, d.Arbiters)
	}
	return fmt.Sprintf("%d of %d control-plane hosts%s and %d of %d workers are ready", masters, d.Replicas, third, workers, d.workers())
}

// members counts the hosts of the set that are left, by role, and names the bound hosts that take no part.
func (d DayOne) members() (counts hiveext.ProvisionRequirements, arbiters int, out []string) {
	for _, h := range d.Hosts {
		member := slices.Contains(d.Set, h.Name)
		switch {
		case member && !h.gone() && h.Role == assisted.RoleMaster:
			counts.ControlPlaneAgents++
		case member && !h.gone() && h.Role == assisted.RoleArbiter:
			arbiters++
		case member && h.Role != assisted.RoleWorker:
			// Counted as gone: the set is given up.
		case member && !h.gone():
			counts.WorkerAgents++
		default:
			out = append(out, h.Name)
		}
	}
	sort.Strings(out)
	return counts, arbiters, out
}

func (d DayOne) nextClosed() DayOneStep {
	counts, arbiters, out := d.members()
	switch {
	case counts.ControlPlaneAgents < d.Replicas:
		return reopening(fmt.Sprintf("%d of %d control-plane hosts of the first installation are left",
			counts.ControlPlaneAgents, d.Replicas))
	case counts.ControlPlaneAgents > d.Replicas:
		return reopening(fmt.Sprintf("spec.replicas is %d, and %d control-plane hosts were to be installed",
			d.Replicas, counts.ControlPlaneAgents))
	case arbiters < d.Arbiters:
		return reopening("the arbiter of the first installation is gone")
	case d.UserHold && !d.Hold:
		return reopening(heldByUser)
	case len(out) > 0:
		const note = "bound hosts that take no part block the installation"
		return DayOneStep{Action: DayOneUnbind, Agents: out, Note: note, Stage: note}
	case d.UserHold:
		return DayOneStep{Held: true, Note: heldByUser, Stage: heldByUser}
	case d.Hold || d.Requirements != counts:
		return DayOneStep{Action: DayOneStart, Agents: d.Set, Requirements: counts, Note: startNote(counts), Stage: d.Wanted()}
	}
	unready := d.unreadyMembers()
	return DayOneStep{Note: unready, Stage: cmp.Or(unready, d.Wanted())}
}

// reopening waits for hosts again.
func reopening(why string) DayOneStep { return DayOneStep{Action: DayOneReopen, Note: why, Stage: why} }

// unreadyMembers names the hosts of the set that keep the service from beginning; empty when there are none.
func (d DayOne) unreadyMembers() string {
	var names []string
	for _, h := range d.Hosts {
		if !h.Ready && !h.Installing && slices.Contains(d.Set, h.Name) {
			names = append(names, fmt.Sprintf("%s (Machine %s)", h.Name, h.Machine))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "The installation cannot begin while these of its hosts are not ready: " + summary(names) +
		". See the conditions of their OpenshiftAssistedConfigs and repair the hosts, or delete their Machines to go on without them"
}

// ready returns the names of the ready hosts of a role, sorted.
func (d DayOne) ready(role string) []string {
	var names []string
	for _, h := range d.Hosts {
		if h.Ready && h.Role == role {
			names = append(names, h.Name)
		}
	}
	sort.Strings(names)
	return names
}
