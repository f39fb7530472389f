// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/agent"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// applyDeparture deletes the Machine's Agents and, when they are gone, lets core go on.
func (r *Reconciler) applyDeparture(ctx context.Context, s *scope, d departure) outcomes {
	for i := range d.agents {
		if err := agent.Delete(ctx, r.Client, &d.agents[i], "its Machine is being deleted"); err != nil {
			return outcomes{departure: kube.OutcomeOf(err)}
		}
	}
	if !d.unhook {
		return outcomes{}
	}
	o := outcomes{}
	if d.forget { // Before the hook goes, after which the host may be another Machine's. That it fails keeps no host from being freed.
		o.record = kube.OutcomeOf(r.forgetPowerCycle(ctx, s))
	}
	o.departure = kube.OutcomeOf(r.unhook(ctx, s))
	return o
}

// unhook takes the pre-terminate hook off, unless an Agent exists that the cache does not show yet: its event triggers another pass, and so
// does that of a Machine which has changed since it was read. It may be another one of the name.
func (r *Reconciler) unhook(ctx context.Context, s *scope) error {
	if exists, err := r.leavesUncached(ctx, s); err != nil || exists {
		return err
	}
	err := kube.PatchUnchanged(ctx, r.Client, s.machine, func(m *clusterv1.Machine) { delete(m.Annotations, bootstrapv1.AgentDeletionHook) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the pre-terminate hook of Machine %s: %w", s.machine.Name, err)
	}
	return nil
}

// leavesUncached reports whether an Agent of the Machine exists, read without the cache: once the hook is off, nobody looks for one any
// more, and the host must not be free while it has one (DESIGN D19).
func (r *Reconciler) leavesUncached(ctx context.Context, s *scope) (bool, error) {
	if slices.Contains(s.missingCRDs, assisted.CRDAgents) {
		return false, nil
	}
	agents := &assisted.AgentList{}
	if err := r.APIReader.List(ctx, agents, client.InNamespace(s.machine.Namespace)); err != nil {
		return false, fmt.Errorf("list Agents: %w", err)
	}
	return r.anyIs(ctx, s, agents.Items, leaves)
}
