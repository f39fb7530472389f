// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

// TestStepBetween: one minor version at a time, and 5.0 from 4.22 on.
func TestStepBetween(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     plan.Step
	}{
		{"4.20.4", "4.20.4", plan.StepWithin},
		{"4.20.4", "4.20.8", plan.StepWithin},
		{"4.20.0-rc.1", "4.20.0", plan.StepWithin},
		{"4.20.8", "4.20.4", plan.StepBack},
		{"4.21.0", "4.20.9", plan.StepBack},
		{"4.20.4", "4.21.0", plan.StepMinor},
		{"4.20.4", "4.21.0-rc.1", plan.StepMinor},
		{"4.20.4", "4.22.0", plan.StepJump},
		{"4.9.4", "4.10.0", plan.StepMinor},
		{"4.17.9", "5.0.0", plan.StepJump},
		{"4.21.9", "5.0.0", plan.StepJump},
		{"4.22.0", "5.0.0", plan.StepMajor},
		{"4.22.0-rc.1", "5.0.0-ec.3", plan.StepMajor},
		{"4.22.0", "4.23.0", plan.StepMinor},
		{"4.23.7", "5.0.1", plan.StepMajor},
		{"4.24.0", "5.0.1", plan.StepMajor},
		{"4.23.7", "5.1.0", plan.StepJump},
		{"4.23.7", "6.0.0", plan.StepJump},
		{"5.0.1", "4.23.9", plan.StepBack},
		{"5.0.1", "5.0.2", plan.StepWithin},
		{"5.0.1", "5.1.0", plan.StepMinor},
		{"5.0.1", "5.2.0", plan.StepJump},
		{"5.9.1", "6.0.0", plan.StepJump},
		{"4.20.0-okd-scos.1", "4.21.0-okd-scos.0", plan.StepMinor},
		{"", "5.0.0", plan.StepUnknown},
		{"4.20.4", "latest", plan.StepUnknown},
	} {
		t.Run(tc.from+" to "+tc.to, func(t *testing.T) {
			g := NewWithT(t)
			step := plan.StepBetween(tc.from, tc.to)
			g.Expect(step).To(Equal(tc.want))
			g.Expect(step.LeavesMinor()).To(Equal(step >= plan.StepMinor))
		})
	}
}

func TestNextMinors(t *testing.T) {
	for from, want := range map[string]string{
		"4.20.4": "4.21", "4.21.9": "4.22", "4.22.0-rc.1": "4.23 or 5.0", "4.23.1": "4.24 or 5.0", "5.0.1": "5.1", "latest": "",
	} {
		NewWithT(t).Expect(plan.NextMinors(from)).To(Equal(want), from)
	}
}
