// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/report"
)

// TestHistory: every milestone but the first ends a phase of the report, which gets the times at which the sandbox has seen them.
func TestHistory(t *testing.T) {
	g := NewWithT(t)
	timeline := newTimeline()
	for _, milestone := range milestones {
		timeline.pass("uid", "demo-0", milestone)
	}
	timeline.pass("", "", HostChosen)
	history := timeline.history(report.NewRecorder(), time.Now())
	g.Expect(history.Machines).To(HaveLen(1), "a host without a Machine is no Machine")
	machine := history.Machines[0]
	g.Expect(machine.Name).To(Equal("demo-0"))
	g.Expect(machine.Created).To(Equal(timeline.machines["uid"].passed[MachineCreated]))
	g.Expect(machine.Passed).To(HaveLen(len(report.Phases())))
	for i, phase := range report.Phases() {
		g.Expect(machine.Passed).To(HaveKeyWithValue(phase, timeline.machines["uid"].passed[milestones[i+1]]))
	}
}
