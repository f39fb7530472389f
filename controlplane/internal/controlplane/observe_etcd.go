// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// errNotRecognized is why nothing is known that only the recorded cluster can say.
var errNotRecognized = errors.New("it is not known which cluster answers")

// observeUpdates asks the installed cluster, when a Machine is to come or to go, whether its hosts are about to be restarted, and whether
// it has a Machine API that works.
func (r *Reconciler) observeUpdates(ctx context.Context, v *view.View) error {
	asksUpdates := plan.AsksUpdates(v)
	if !asksUpdates && !plan.AsksMembers(v) {
		return nil
	}
	switch {
	case v.Workload.OtherCluster != "":
		return nil // Which says enough.
	case !v.Recognized():
		v.Workload.MachineAPIProblem = errNotRecognized
		return nil
	}
	cluster := v.ClusterKey()
	v.Workload.MachineAPI, v.Workload.MachineAPIProblem = r.Nodes.MachineAPI(ctx, cluster)
	if !asksUpdates {
		return nil
	}
	var err error
	v.Workload.Updates, err = r.Health.Updates(ctx, cluster, r.subscriber(v))
	v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	return nil
}

// observeMembers asks etcd for its members when one is about to go, and the cluster for its Nodes, also when a Machine waits to be drained.
// What cannot be asked now is a fact like any other: the Machine waits, and the condition says for what.
func (r *Reconciler) observeMembers(ctx context.Context, v *view.View) error {
	asksMembers := plan.AsksMembers(v)
	if !asksMembers && !plan.AsksNodes(v) {
		return nil
	}
	cluster := v.ClusterKey()
	v.Workload.MembersProblem = r.sameCluster(ctx, v)
	// The Nodes first: a host whose Node is gone before the members are read is added no more.
	if v.Workload.MembersProblem == nil {
		v.Workload.Nodes, v.Workload.MembersProblem = r.Nodes.ControlPlaneNodes(ctx, cluster)
	}
	if v.Workload.MembersProblem == nil && asksMembers {
		v.Workload.Members, v.Workload.MembersProblem = r.Etcd.Members(ctx, cluster, plan.AvoidedNode(v))
	}
	return nil
}

// sameCluster asks which cluster it is that answers: somebody may have put the kubeconfig of another into the Secret, and what is done to
// the members of etcd cannot be undone.
func (r *Reconciler) sameCluster(ctx context.Context, v *view.View) error {
	if v.Record == nil {
		return nil
	}
	id, err := r.Identity.ClusterID(ctx, v.ClusterKey())
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errNotRecognized, err)
	case id == "":
		return errNotRecognized
	case id != v.Record.ClusterID:
		return fmt.Errorf("cluster %s answers, and %s was installed: look at Secret %s", id, v.Record.ClusterID,
			secret.Name(v.ClusterName, secret.Kubeconfig))
	}
	return nil
}
