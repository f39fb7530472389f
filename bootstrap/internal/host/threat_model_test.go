// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestThreatModel is the table of docs/security.md: a row of it is the case of the same name.
func TestThreatModel(t *testing.T) {
	const beforeHost, afterHost, afterBegin = realsRegister - time.Minute, realsRegister + time.Minute, installationBegins + time.Second
	tests := []struct {
		name  string
		story story
		// letIn is whether the stranger is approved at any time; host is whether the host is in the end; named is whether the condition names
		// both then.
		letIn, host, named bool
	}{
		{name: "image only", story: story{known: true, strangerAt: beforeHost}, host: true},
		{
			name:  "image of another cluster",
			story: story{known: true, strangerMAC: true, strangerSerial: true, strangerElsewhere: true, strangerAt: beforeHost}, host: true,
		},
		{name: "MAC address", story: story{known: true, strangerMAC: true, strangerAt: beforeHost}, host: true},
		{
			name: "MAC address, no known serial number, before the host", story: story{strangerMAC: true, strangerAt: beforeHost}, letIn: true,
			named: true,
		},
		{name: "MAC address, no known serial number, after the host", story: story{strangerMAC: true, strangerAt: afterHost}, named: true},
		{name: "serial number", story: story{known: true, strangerSerial: true, strangerAt: beforeHost}, host: true},
		{name: "serial number of the board", story: story{known: true, strangerSerial: true, clone: true, strangerAt: afterHost}},
		{name: "both, before the provisioning", story: story{known: true, strangerMAC: true, strangerSerial: true, strangerAt: 0}, host: true},
		{
			name: "both, before the host", story: story{known: true, strangerMAC: true, strangerSerial: true, strangerAt: beforeHost}, letIn: true,
			named: true,
		},
		{name: "both, after the host", story: story{known: true, strangerMAC: true, strangerSerial: true, strangerAt: afterHost}, named: true},
		{
			name:  "both, after the installation began",
			story: story{known: true, strangerMAC: true, strangerSerial: true, strangerAt: afterBegin, begins: true}, host: true, named: true,
		},
		{
			name: "whole inventory", story: story{known: true, strangerMAC: true, strangerSerial: true, clone: true, strangerAt: beforeHost},
			letIn: true, host: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			tt.story.again, tt.story.typo = never, never
			stage := newStage(tt.story)
			letIn := false
			stage.play(func() {
				for _, a := range stage.agents {
					letIn = letIn || a.Spec.Approved && stage.behind[a.Name] == stranger
				}
			})
			told := stage.recognized[0]
			g.Expect(letIn).To(Equal(tt.letIn), told.Message)
			g.Expect(stage.approved("r-0")).To(Equal(tt.host), told.Message)
			if tt.named {
				g.Expect(told.Status).To(Equal(metav1.ConditionFalse))
				g.Expect(told.Message).To(And(ContainSubstring("r-0 ("), ContainSubstring(stranger+" (")))
			}
		})
	}
}

// TestThreatModelInfraEnv: with spec.hostIdentity InfraEnv, the first host that boots the Machine's image is let in, whatever it is; a
// second one stops it.
func TestThreatModelInfraEnv(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	ofOtherInfrastructure(s)
	g.Expect(decide(s).bind).NotTo(BeNil())
	isBound(s)
	secondAgent(s, "")
	d := decide(s)
	g.Expect(d.withdraw).NotTo(BeNil())
	g.Expect(d.recognized.Message).To(And(ContainSubstring("a-0 ("), ContainSubstring("a-1 (")))
}
