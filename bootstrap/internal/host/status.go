// SPDX-License-Identifier: Apache-2.0

package host

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// ownedConditions are the conditions that this controller writes; the config controller writes the others (CONTRACT BOOT-52).
var ownedConditions = []string{
	bootstrapv1.HostHealthyCondition,
	bootstrapv1.HostRecognizedCondition,
	bootstrapv1.AgentInstalledCondition,
}

// setStatus computes every condition that this controller owns. What a failed pass could not decide keeps what the last one said.
func setStatus(s *scope) {
	set(s, bootstrapv1.HostHealthyCondition, s.decision.healthy)
	set(s, bootstrapv1.HostRecognizedCondition, s.decision.recognized)
	set(s, bootstrapv1.AgentInstalledCondition, s.decision.installed)
}

func set(s *scope, conditionType string, f fact) {
	if f.reason == "" {
		return
	}
	conditions.Set(s.config, metav1.Condition{Type: conditionType, Status: f.status, Reason: f.reason, Message: f.message})
}
