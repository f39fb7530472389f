// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// observeVersion reads which release the installed cluster runs, also while nobody wants another: somebody else may upgrade it (DESIGN
// D30). By its ClusterVersion the cluster is recognised, before which nothing of its health is read. What has to be acknowledged before an
// upgrade it asks only when one is wanted.
func (r *Reconciler) observeVersion(ctx context.Context, v *view.View) error {
	if !v.Initialized() || !v.Life.Installed() {
		return nil
	}
	before, subscriber := v.Workload.Problem, r.subscriber(v)
	r.observeInstalled(ctx, v, subscriber)
	if !subscriber.Waits && plan.Waits(v) {
		// What was read says that something goes on, and may be a minute old.
		v.Workload.Problem, v.Workload.Version, v.Workload.Operators, v.Workload.Etcd = before, nil, nil, nil
		r.observeInstalled(ctx, v, r.subscriber(v))
	}
	if v.Workload.OtherCluster == "" && plan.AsksGates(v) {
		v.Workload.Gates.Needed, v.Workload.Gates.Problem = r.Upgrades.Gates(ctx, v.ClusterKey())
		v.Workload.Problem = errors.Join(v.Workload.Problem, v.Workload.Gates.Problem)
	}
	return nil
}

// observeInstalled reads the ClusterVersion, and how the control plane is.
func (r *Reconciler) observeInstalled(ctx context.Context, v *view.View, subscriber workload.Subscriber) {
	version, err := r.Upgrades.Version(ctx, v.ClusterKey(), subscriber)
	v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	if v.Workload.OtherCluster = otherCluster(v, version); v.Workload.OtherCluster != "" {
		return
	}
	v.Workload.Version = version
	switch {
	case v.Recognized():
		r.observeHealth(ctx, v, subscriber)
	case err != nil:
		v.Workload.Operators = r.Health.LastOperators(v.ClusterKey()) // A failed read is no news.
	}
}

// otherCluster is the ID of another cluster that answers than the recorded one; empty when none does. Somebody may have put the kubeconfig
// of another cluster into the Secret.
func otherCluster(v *view.View, version *workload.ClusterVersion) string {
	switch {
	case v.Life == view.Mismatch:
		return v.Workload.ClusterID
	case version != nil && v.Record != nil && version.ClusterID != v.Record.ClusterID:
		return cmp.Or(version.ClusterID, "without an ID")
	default:
		return ""
	}
}
