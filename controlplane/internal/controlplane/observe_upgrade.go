// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// observeVersion reads which release the installed cluster runs, also while nobody wants another: somebody else may upgrade it (DESIGN
// D30). What has to be acknowledged before an upgrade it asks only when one is wanted.
func (r *Reconciler) observeVersion(ctx context.Context, v *view.View) error {
	if !v.Initialized() || !v.Life.Installed() {
		return nil
	}
	var err error
	v.Workload.Version, err = r.Upgrades.Version(ctx, v.ClusterKey(), r.subscriber(v))
	if err == nil && plan.AsksGates(v) {
		v.Workload.Gates, err = r.Upgrades.Gates(ctx, v.ClusterKey())
		if err != nil {
			v.Workload.Version = nil // Nothing is asked for on half the facts.
		}
	}
	v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	return nil
}
