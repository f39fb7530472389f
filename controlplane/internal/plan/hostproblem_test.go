// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// TestHostProblemOfARefusedBind: a bind that assisted-service refuses is a problem of the host; one that waits for its time is none.
func TestHostProblemOfARefusedBind(t *testing.T) {
	for reason, told := range map[string]bool{
		bootstrapv1.AgentBindingReason:        false,
		bootstrapv1.WaitingForClusterReason:   false,
		bootstrapv1.AgentNeedsAttentionReason: true,
		// A host that waits for somebody is a problem too.
		bootstrapv1.AgentPendingUserActionReason: true,
	} {
		t.Run(reason, func(t *testing.T) {
			g := NewWithT(t)
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			conditions.Set(config, metav1.Condition{
				Type: bootstrapv1.AgentInstalledCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "why",
			})
			g.Expect(HostProblem(config) != nil).To(Equal(told))
		})
	}
}
