// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// expectedReasons are those of the conditions of a host that is on its way.
var expectedReasons = sets.New(
	bootstrapv1.WaitingForHostReason, bootstrapv1.ClaimingAgentReason, bootstrapv1.WaitingForRecognitionReason,
	bootstrapv1.WaitingForCRDsReason, bootstrapv1.WaitingForClusterReason, bootstrapv1.AgentDiscoveringReason, bootstrapv1.AgentBindingReason,
	bootstrapv1.AgentReadyReason, bootstrapv1.AgentInstallingReason,
)

// HostProblem is the first condition of a host that is not as expected; nil when all are.
func HostProblem(config *bootstrapv1.OpenshiftAssistedConfig) *metav1.Condition {
	if config == nil {
		return nil
	}
	for _, conditionType := range []string{bootstrapv1.HostHealthyCondition, bootstrapv1.HostRecognizedCondition,
		bootstrapv1.AgentInstalledCondition} {
		c := conditions.Get(config, conditionType)
		if c != nil && c.Status == metav1.ConditionFalse && !expectedReasons.Has(c.Reason) {
			return c
		}
	}
	return nil
}
