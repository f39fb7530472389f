// SPDX-License-Identifier: Apache-2.0

package config

import (
	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// deletion is what a pass does about a config that is being deleted, and what the condition Deleting says.
type deletion struct {
	// leave is true when the config gives up its InfraEnv, which goes with its last user.
	leave bool
	// finish is true when the finalizer goes.
	finish bool

	deleting fact.Fact
}

// decideDeletion needs neither the Machine nor the Cluster, so that a vanished owner leaves no stuck object (DESIGN D12, CONTRACT BOOT-36).
func decideDeletion(s *scope) deletion {
	if s.machine != nil && s.machine.DeletionTimestamp.IsZero() {
		return deletion{
			deleting: fact.Ongoing(
				bootstrapv1.WaitingForMachineReason, "Machine %s lives and its host needs the InfraEnv: delete the Machine", s.machine.Name,
			),
		}
	}
	if len(s.claimed) > 0 {
		// The pass of the host deletes them, or the agent controller if the Machine is gone.
		return deletion{deleting: fact.Ongoing(bootstrapv1.WaitingForAgentDeletionReason, "Agent %s of the Machine exists", s.claimed[0].Name)}
	}
	if s.infraEnv == nil || !kube.OwnedBy(s.infraEnv, s.config) {
		return deletion{finish: true, deleting: fact.Done(bootstrapv1.DeletionCompletedReason)}
	}
	return deletion{
		leave:    s.infraEnv.DeletionTimestamp.IsZero(),
		deleting: fact.Ongoing(bootstrapv1.WaitingForInfraEnvDeletionReason, "InfraEnv %s is being given up", s.infraEnv.Name),
	}
}
