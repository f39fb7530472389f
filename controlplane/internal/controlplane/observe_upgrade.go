// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
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
	version, err := r.Upgrades.Version(ctx, v.ClusterKey(), r.subscriber(v))
	v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	if version != nil && v.Record != nil && version.ClusterID != v.Record.ClusterID {
		// Somebody may have put the kubeconfig of another cluster into the Secret.
		v.Workload.OtherCluster = cmp.Or(version.ClusterID, "without an ID")
		return nil
	}
	v.Workload.Version = version
	if plan.AsksGates(v) {
		v.Workload.Gates.Needed, v.Workload.Gates.Problem = r.Upgrades.Gates(ctx, v.ClusterKey())
		v.Workload.Problem = errors.Join(v.Workload.Problem, v.Workload.Gates.Problem)
	}
	return nil
}
