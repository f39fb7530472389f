// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// leaveEtcd lets Machines leave etcd before their hosts are freed (DESIGN D24). Its steps need no record: when the manager ends between two
// of them, the next pass finds what is left to do in the list of members and in the Nodes.
func (r *Reconciler) leaveEtcd(ctx context.Context, v *view.View, d plan.LeavingDecision) error {
	var errs []error
	for _, machine := range d.Drain {
		errs = append(errs, r.removeHook(ctx, v, machine, controlplanev1.EtcdDrainHookAnnotation))
	}
	errs = append(errs, r.releaseHosts(ctx, v, d))
	if d.Remove != nil {
		errs = append(errs, r.removeMember(ctx, v, d))
	}
	if d.Stray != nil {
		errs = append(errs, r.removeStray(ctx, v, d.Stray))
	}
	return kerrors.NewAggregate(errs)
}

// releaseHosts lets the hosts of Machines go that have no member in etcd.
func (r *Reconciler) releaseHosts(ctx context.Context, v *view.View, d plan.LeavingDecision) error {
	if len(d.Release) > 0 && d.AtOnce {
		if confirmed, err := r.confirmNotInstalled(ctx, v); err != nil || !confirmed {
			return err
		}
	}
	var errs []error
	for _, l := range d.Release {
		machine := v.Machines.Owned[l.Machine]
		if d.AtOnce {
			errs = append(errs, r.freeHost(ctx, v, machine))
			continue
		}
		errs = append(errs, r.releaseHost(ctx, v, l, machine))
	}
	return kerrors.NewAggregate(errs)
}

// removeMember removes the member of a Machine from etcd, and then its Node.
func (r *Reconciler) removeMember(ctx context.Context, v *view.View, d plan.LeavingDecision) error {
	cluster, log := v.ClusterKey(), ctrl.LoggerFrom(ctx)
	if d.LeaderTo != 0 {
		// It is only a courtesy: without a leader, etcd elects another one and does not answer meanwhile.
		if err := r.Etcd.MoveLeader(ctx, cluster, d.Remove.Node, d.LeaderTo); err != nil {
			log.Error(err, "Leaving the leader of etcd where it is", "Machine", d.Remove.Machine)
		}
	}
	if err := r.Etcd.RemoveMember(ctx, cluster, d.Remove.Node, d.Member.ID); err != nil {
		return fmt.Errorf("remove the member of Machine %s: %w", d.Remove.Machine, err)
	}
	machine := v.Machines.Owned[d.Remove.Machine]
	r.eventAbout(v, machine, controlplanev1.EventEtcdMemberRemoved, "RemoveEtcdMember", "Removed member %x of Machine %s from etcd",
		d.Member.ID, d.Remove.Machine)
	return r.releaseHost(ctx, v, *d.Remove, machine)
}

// removeStray removes a member that no Machine and no Node accounts for.
func (r *Reconciler) removeStray(ctx context.Context, v *view.View, member *workload.Member) error {
	name := plan.MemberName(*member)
	if err := r.Etcd.RemoveMember(ctx, v.ClusterKey(), "", member.ID); err != nil {
		return fmt.Errorf("remove member %s of etcd, whose host is gone: %w", name, err)
	}
	r.event(v, corev1.EventTypeWarning, controlplanev1.EventEtcdStrayRemoved, "RemoveEtcdMember",
		"Removed member %s of etcd (%x), which does not serve and belongs to no Machine and no Node", name, member.ID)
	return nil
}

// releaseHost deletes the Node of a Machine that has no member in etcd, and lets Cluster API free the host. The Node goes at once: as long
// as it exists and its host runs, the operator of etcd adds the host again. Whether it just did is looked up before the hook goes: a member
// whose host is freed then could not be replaced.
func (r *Reconciler) releaseHost(ctx context.Context, v *view.View, l plan.Leaving, machine *clusterv1.Machine) error {
	node := v.Workload.NodeOf(machine)
	if node == nil {
		return r.freeHost(ctx, v, machine)
	}
	cluster := v.ClusterKey()
	if _, err := r.Nodes.DeleteNode(ctx, cluster, node.Name, node.UID); err != nil {
		return fmt.Errorf("delete the Node of Machine %s: %w", machine.Name, err)
	}
	members, err := r.Etcd.Members(ctx, cluster, node.Name)
	if err != nil {
		return fmt.Errorf("read whether Machine %s has left etcd: %w", machine.Name, err)
	}
	if plan.IsMember(members, l) {
		return fmt.Errorf("etcd added the host of Machine %s again before its Node was deleted: its member is removed once more", machine.Name)
	}
	return r.freeHost(ctx, v, machine)
}

// freeHost lets Cluster API free the host of a Machine.
func (r *Reconciler) freeHost(ctx context.Context, v *view.View, machine *clusterv1.Machine) error {
	return r.removeHook(ctx, v, machine, controlplanev1.EtcdHookAnnotation)
}

// removeHook lets Cluster API go on with the deletion of a Machine, unless that has changed since it was read: there may be another one of
// its name.
func (r *Reconciler) removeHook(ctx context.Context, v *view.View, machine *clusterv1.Machine, hook string) error {
	m := machine.DeepCopy()
	defer r.wroteMachine(v, m)
	_, err := r.lockedPatch(ctx, m, map[string]any{"annotations": map[string]any{hook: nil}}, nil)
	return err
}
