// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"

	"github.com/capi-openshift/agent-providers/internal/kube"
)

// applyDeletion gives the InfraEnv up. The config goes at the end of the pass.
func (r *Reconciler) applyDeletion(ctx context.Context, s *scope, d deletion) outcomes {
	if !d.leave {
		return outcomes{}
	}
	return outcomes{deletion: kube.OutcomeOf(r.leaveInfraEnv(ctx, s))}
}

// leaveInfraEnv removes the config from the users of its InfraEnv, or deletes the InfraEnv when it is the last one. Both fail with a
// conflict if somebody joined meanwhile.
func (r *Reconciler) leaveInfraEnv(ctx context.Context, s *scope) error {
	others := otherUsers(s.infraEnv, s.config)
	if len(others) > 0 {
		if err := r.setUsers(ctx, s, others); err != nil {
			return fmt.Errorf("leave InfraEnv %s: %w", s.infraEnv.Name, err)
		}
		return nil
	}
	return kube.DeleteUnchanged(ctx, r.Client, s.infraEnv, "its last config is being deleted")
}
