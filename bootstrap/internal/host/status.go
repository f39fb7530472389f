// SPDX-License-Identifier: Apache-2.0

package host

import (
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
	s.decision.healthy.Set(s.config, bootstrapv1.HostHealthyCondition)
	s.decision.recognized.Set(s.config, bootstrapv1.HostRecognizedCondition)
	s.departure.recognized.Set(s.config, bootstrapv1.HostRecognizedCondition)
	s.decision.installed.Set(s.config, bootstrapv1.AgentInstalledCondition)
}
