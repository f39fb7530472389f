// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func arbiter(name string) plan.Host {
	return plan.Host{Name: name, Role: assisted.RoleArbiter, Ready: true}
}

// TestArbiterOnDayOne: nothing is installed without the arbiter, and with no more than one.
func TestArbiterOnDayOne(t *testing.T) {
	masters := []plan.Host{master("a"), master("b")}
	tests := []struct {
		name   string
		hosts  []plan.Host
		set    []string
		action plan.DayOneAction
		agents []string
	}{
		{name: "the arbiter is waited for", hosts: masters, action: plan.DayOneNothing},
		{name: "one that is not ready is waited for", hosts: append(masters, unready(arbiter("x"))), action: plan.DayOneNothing},
		{name: "ready", hosts: append(masters, arbiter("x")), action: plan.DayOneStart, agents: []string{"a", "b", "x"}},
		{name: "one of two", hosts: append(masters, arbiter("y"), arbiter("x")), action: plan.DayOneClose, agents: []string{"a", "b", "x"}},
		{
			name: "a surplus one is unbound", hosts: append(masters, arbiter("x"), arbiter("y")), set: []string{"a", "b", "x"},
			action: plan.DayOneUnbind, agents: []string{"y"},
		},
		{name: "started", hosts: append(masters, arbiter("x")), set: []string{"a", "b", "x"}, action: plan.DayOneStart,
			agents: []string{"a", "b", "x"}},
		{name: "gone", hosts: masters, set: []string{"a", "b", "x"}, action: plan.DayOneReopen},
		{name: "lost", hosts: append(masters, lost(arbiter("x"))), set: []string{"a", "b", "x"}, action: plan.DayOneReopen},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			step := plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 2, Arbiters: 1, Hold: true, Requirements: counts(2, 0), Hosts: tt.hosts,
				Closed: tt.set != nil, Set: tt.set, Now: now,
			}.Next()
			g.Expect(step.Action).To(Equal(tt.action), step.Note)
			g.Expect(step.Agents).To(ConsistOf(tt.agents), step.Note)
		})
	}
}

func TestReadyNoteNamesArbiters(t *testing.T) {
	step := plan.DayOne{Phase: assisted.PhaseWaiting, Replicas: 2, Arbiters: 1, Hold: true, Requirements: counts(2, 0)}.Next()
	NewWithT(t).Expect(step.Note).To(Equal("0 of 2 control-plane hosts, 0 of 1 arbiters and 0 of 0 workers are ready"))
}
