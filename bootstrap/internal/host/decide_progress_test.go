// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestProgressHasOneText: each stage of an installation, or its percentage, would be a write of ours and one of Cluster API's.
func TestProgressHasOneText(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	bound(&s.agents[0], "installing-in-progress", assisted.Condition{
		Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationInProgress,
	})
	var texts []string
	for _, stage := range []string{
		"", "Starting installation", "Waiting for bootkube", "Writing image to disk", "Rebooting", "Waiting for ignition", "Joined", "Done",
	} {
		s.agents[0].Status.Progress.CurrentStage = stage
		installed := decide(s).installed
		g.Expect(installed.Reason).To(Equal(bootstrapv1.AgentInstallingReason))
		texts = append(texts, installed.Message)
	}
	g.Expect(texts[0]).To(HavePrefix("Agent a-0: the host is being installed"))
	g.Expect(slices.Compact(texts)).To(HaveLen(1))
}
