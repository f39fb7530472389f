// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func master(name string) plan.Host {
	return plan.Host{Name: name, Role: assisted.RoleMaster, Ready: true}
}

func worker(name string) plan.Host {
	return plan.Host{Name: name, Role: assisted.RoleWorker, Ready: true}
}

func unready(h plan.Host) plan.Host {
	h.Ready = false
	return h
}

func lost(h plan.Host) plan.Host {
	h.Ready, h.Lost = false, true
	return h
}

func leaving(h plan.Host) plan.Host {
	h.Ready, h.Leaving = false, true
	return h
}

func counts(masters, workers int) hiveext.ProvisionRequirements {
	return hiveext.ProvisionRequirements{ControlPlaneAgents: masters, WorkerAgents: workers}
}

func TestDayOne(t *testing.T) {
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	tests := []struct {
		name string
		in   plan.DayOne
		want plan.DayOneStep
	}{
		{
			name: "nothing before the service has spoken", in: plan.DayOne{Phase: assisted.PhaseUnknown, Replicas: 3, Hold: true},
		},
		{
			name: "nothing once the installation runs, whatever Cluster API asks for",
			in:   plan.DayOne{Phase: assisted.PhaseInstalling, Replicas: 3, Workers: 9, Requirements: counts(3, 2)},
		},
		{
			name: "requirements follow what Cluster API asks for",
			in:   plan.DayOne{Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 2, Hold: true, Requirements: counts(3, 1)},
			want: plan.DayOneStep{Action: plan.DayOneRequire, Requirements: counts(3, 2)},
		},
		{
			name: "a hold that somebody cleared is set again while day 1 is open",
			in:   plan.DayOne{Phase: assisted.PhaseWaiting, Replicas: 3, Requirements: counts(3, 0)},
			want: plan.DayOneStep{Action: plan.DayOneRequire, Requirements: counts(3, 0)},
		},
		{
			name: "a single-node cluster requires no workers",
			in:   plan.DayOne{Phase: assisted.PhaseWaiting, Replicas: 1, Workers: 2, Hold: true, Requirements: counts(1, 2)},
			want: plan.DayOneStep{Action: plan.DayOneRequire, Requirements: counts(1, 0)},
		},
		{
			name: "control-plane hosts are waited for without end",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 1, Hold: true, Requirements: counts(3, 1), WorkerWait: time.Minute,
				WaitStarted: ago(time.Hour), Hosts: []plan.Host{master("a"), master("b"), unready(master("c")), worker("w")}, Now: now,
			},
		},
		{
			name: "the wait for workers begins when all control-plane hosts are ready",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1 + 2, Workers: 1, Hold: true, Requirements: counts(3, 1), WorkerWait: time.Minute,
				Hosts: []plan.Host{master("a"), master("b"), master("c")}, Now: now,
			},
			want: plan.DayOneStep{Action: plan.DayOneStartWait, RequeueAfter: time.Minute},
		},
		{
			name: "the rest of the wait",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 1, Hold: true, Requirements: counts(3, 1), WorkerWait: time.Minute,
				WaitStarted: ago(20 * time.Second), Hosts: []plan.Host{master("a"), master("b"), master("c")}, Now: now,
			},
			want: plan.DayOneStep{RequeueAfter: 40 * time.Second},
		},
		{
			name: "the wait ends: the installation goes on without the worker",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 2, Hold: true, Requirements: counts(3, 2), WorkerWait: time.Minute,
				WaitStarted: ago(time.Minute), Hosts: []plan.Host{master("b"), master("a"), master("c"), worker("w"), unready(worker("x"))}, Now: now,
			},
			want: plan.DayOneStep{Action: plan.DayOneClose, Agents: []string{"a", "b", "c", "w"}},
		},
		{
			name: "the user holds the installation: day 1 stays open",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 1, Hold: true, UserHold: true, Requirements: counts(3, 1),
				Hosts: []plan.Host{master("a"), master("b"), master("c")}, Now: now,
			},
			want: plan.DayOneStep{Held: true},
		},
		{
			name: "the user holds an installation whose set is fixed",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Hold: true, UserHold: true, Requirements: counts(1, 0), Closed: true, Set: []string{"a"},
				Hosts: []plan.Host{master("a")},
			},
			want: plan.DayOneStep{Held: true},
		},
		{
			name: "the user holds an installation that has not begun yet",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, UserHold: true, Requirements: counts(1, 0), Closed: true, Set: []string{"a"},
				Hosts: []plan.Host{master("a")},
			},
			want: plan.DayOneStep{Action: plan.DayOneReopen},
		},
		{
			name: "all are ready",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 1, Hold: true, Requirements: counts(3, 1),
				Hosts: []plan.Host{worker("w"), master("c"), master("b"), master("a")}, Now: now,
			},
			want: plan.DayOneStep{Action: plan.DayOneStart, Requirements: counts(3, 1), Agents: []string{"a", "b", "c", "w"}},
		},
		{
			name: "a single-node cluster takes no worker, even a ready one",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Workers: 1, Hold: true, Requirements: counts(1, 0),
				Hosts: []plan.Host{worker("w"), master("a")}, Now: now,
			},
			want: plan.DayOneStep{Action: plan.DayOneClose, Agents: []string{"a"}},
		},
		{
			name: "closed: bound hosts that take no part are unbound first",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a"}, Hold: true, Requirements: counts(1, 0),
				Hosts: []plan.Host{worker("w"), master("a")},
			},
			want: plan.DayOneStep{Action: plan.DayOneUnbind, Agents: []string{"w"}},
		},
		{
			name: "closed: the counts of what is bound and the hold go in one step",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Workers: 2, Closed: true, Set: []string{"a", "b", "c", "w"},
				Hold: true, Requirements: counts(3, 2), Hosts: []plan.Host{worker("w"), master("a"), unready(master("b")), master("c")},
			},
			want: plan.DayOneStep{Action: plan.DayOneStart, Agents: []string{"a", "b", "c", "w"}, Requirements: counts(3, 1)},
		},
		{
			name: "started: a host that was bound too late is unbound as long as the service waits",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a"}, Requirements: counts(1, 0),
				Hosts: []plan.Host{master("a"), unready(worker("late"))},
			},
			want: plan.DayOneStep{Action: plan.DayOneUnbind, Agents: []string{"late"}},
		},
		{
			name: "started: nothing is left to do",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a"}, Requirements: counts(1, 0),
				Hosts: []plan.Host{master("a")},
			},
		},
		{
			name: "a worker of the set that is not heard from is left out",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a", "w"}, Requirements: counts(1, 1),
				Hosts: []plan.Host{master("a"), lost(worker("w"))},
			},
			want: plan.DayOneStep{Action: plan.DayOneUnbind, Agents: []string{"w"}},
		},
		{
			name: "a worker of the set that vanished: the counts adapt",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a", "w"}, Requirements: counts(1, 1),
				Hosts: []plan.Host{master("a")},
			},
			want: plan.DayOneStep{Action: plan.DayOneStart, Agents: []string{"a", "w"}, Requirements: counts(1, 0)},
		},
		{
			name: "a control-plane host of the set that vanished opens day 1 again",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 3, Closed: true, Set: []string{"a", "b", "c"}, Requirements: counts(3, 0),
				Hosts: []plan.Host{master("a"), master("b"), worker("x")},
			},
			want: plan.DayOneStep{Action: plan.DayOneReopen},
		},
		{
			name: "a control-plane host of the set that is not heard from opens day 1 again",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a"}, Hold: true, Requirements: counts(1, 0),
				Hosts: []plan.Host{lost(master("a"))},
			},
			want: plan.DayOneStep{Action: plan.DayOneReopen},
		},
		{
			name: "a control-plane host of the set whose Machine is being deleted opens day 1 again",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a"}, Hold: true, Requirements: counts(1, 0),
				Hosts: []plan.Host{leaving(master("a"))},
			},
			want: plan.DayOneStep{Action: plan.DayOneReopen},
		},
		{
			name: "a worker of the set whose Machine is being deleted is left out",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a", "w"}, Hold: true, Requirements: counts(1, 1),
				Hosts: []plan.Host{master("a"), leaving(worker("w"))},
			},
			want: plan.DayOneStep{Action: plan.DayOneUnbind, Agents: []string{"w"}},
		},
		{
			name: "fewer replicas than control-plane hosts of the set open day 1 again",
			in: plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a", "b", "c"}, Hold: true, Requirements: counts(3, 0),
				Hosts: []plan.Host{master("a"), master("b"), master("c")},
			},
			want: plan.DayOneStep{Action: plan.DayOneReopen},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.in.Next(), cmpopts.IgnoreFields(plan.DayOneStep{}, "Note", "Stage")); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDayOneNamesHostsThatAreNotReady: a member of the set that turns insufficient stays bound and blocks the service, and nothing is
// written.
func TestDayOneNamesHostsThatAreNotReady(t *testing.T) {
	broken := unready(worker("w"))
	broken.Machine = "worker-0"
	in := plan.DayOne{
		Phase: assisted.PhaseWaiting, Replicas: 1, Closed: true, Set: []string{"a", "w"}, Requirements: counts(1, 1),
		Hosts: []plan.Host{master("a"), broken},
	}
	step := in.Next()
	if step.Action != plan.DayOneNothing || !strings.Contains(step.Note, "w (Machine worker-0)") || strings.Contains(step.Note, "a (Machine") {
		t.Errorf("step %+v", step)
	}
	in.Hosts[1].Installing = true
	if note := in.Next().Note; note != "" {
		t.Errorf("the installation has begun: %q", note)
	}
}
