// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"slices"

	"github.com/openshift/assisted-service/api/common"
)

// ReduceAgent drops what the providers do not read of an Agent's fields that they know: the checks that pass, and the annotations that
// repeat the status, which are most of it. It is for Agents on their way into a cache. What is written of an Agent is the difference to
// what was read, so nothing is lost.
func ReduceAgent(agent *Agent) {
	delete(agent.Annotations, InventoryAnnotation)
	delete(agent.Annotations, ChecksAnnotation)
	for group, checks := range agent.Status.ValidationsInfo {
		failing := slices.DeleteFunc(slices.Clone(checks), func(check common.ValidationResult) bool { return !fails(check) })
		if len(failing) == 0 {
			delete(agent.Status.ValidationsInfo, group)
			continue
		}
		agent.Status.ValidationsInfo[group] = slices.Clip(failing)
	}
}

func fails(check common.ValidationResult) bool {
	return check.Status == "failure" || check.Status == "error"
}
