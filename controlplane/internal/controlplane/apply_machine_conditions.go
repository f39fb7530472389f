// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// tells reports whether a Machine has a condition already. That its generation is a later one is no news: core changes its spec several
// times while its host becomes a Node.
func tells(m *clusterv1.Machine, wanted metav1.Condition) bool {
	known := conditions.Get(m, wanted.Type)
	return known != nil && known.Status == wanted.Status && known.Reason == wanted.Reason && known.Message == bounded.Message(wanted.Message)
}

// tellState sets conditions of a Machine, in one write, when one of them changes. One that is nil stays as it is.
func (r *Reconciler) tellState(ctx context.Context, m *clusterv1.Machine, told ...*metav1.Condition) error {
	told = slices.DeleteFunc(slices.Clone(told), func(c *metav1.Condition) bool { return c == nil || tells(m, *c) })
	if len(told) == 0 {
		return nil
	}
	types := make([]string, 0, len(told))
	for _, condition := range told {
		types = append(types, condition.Type)
	}
	return r.patchConditions(ctx, m, types, func() {
		for _, condition := range told {
			bounded.SetCondition(m, *condition)
		}
	})
}

// patchConditions writes what a change makes of a Machine's conditions of the given types, and of what the options name beside them. It
// writes nothing when nothing changes.
func (r *Reconciler) patchConditions(ctx context.Context, m *clusterv1.Machine, types []string, change func(), also ...patch.Option) error {
	helper, err := patch.NewHelper(m, r.Client)
	if err != nil {
		return fmt.Errorf("prepare the patch of Machine %s: %w", klog.KObj(m), err)
	}
	change()
	if err := helper.Patch(ctx, m, append(also, patch.WithOwnedConditions{Conditions: types})...); err != nil {
		return fmt.Errorf("set the conditions %s of Machine %s: %w", strings.Join(types, ", "), klog.KObj(m), err)
	}
	return nil
}

// upToDateCondition is the condition UpToDate of a Machine (CONTRACT CP-45). Without differences, the problem says why there may be one
// that is not known; nil is none.
//
// updating: nothing but the version differs, which is changed in place.
func upToDateCondition(differences []string, updating bool, problem error) *metav1.Condition {
	condition := &metav1.Condition{
		Type: clusterv1.MachineUpToDateCondition, Status: metav1.ConditionTrue, Reason: controlplanev1.MachineUpToDateReason,
	}
	switch {
	case len(differences) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.MachineNotUpToDateReason
		if updating {
			condition.Reason = controlplanev1.MachineUpdatingReason
		}
		condition.Message = "* " + strings.Join(differences, "\n* ")
	case problem != nil:
		condition.Status, condition.Reason = metav1.ConditionUnknown, controlplanev1.MachineUpToDateUnknownReason
		condition.Message = "* " + problem.Error()
	}
	return condition
}

// memberCondition says how the member of etcd on a Machine's host is, as the operator of etcd reports it. It is nil while nobody tells:
// what was known stays.
func memberCondition(v *view.View, m *clusterv1.Machine) *metav1.Condition {
	etcd, node := v.Workload.Etcd, m.Status.NodeRef.Name
	if etcd == nil || node == "" {
		return nil
	}
	condition := &metav1.Condition{
		Type: controlplanev1.MachineEtcdMemberHealthyCondition, Status: metav1.ConditionTrue,
		Reason: controlplanev1.MachineEtcdMemberHealthyReason,
	}
	problem := plan.MemberProblem(etcd.MembersAvailable.Message, m)
	switch {
	case problem != "":
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.MachineEtcdMemberNotHealthyReason
		condition.Message = "* The operator of etcd says: " + problem
	case !slices.ContainsFunc(etcd.Nodes, func(n workload.EtcdNode) bool { return n.Name == node }):
		condition.Status, condition.Reason = metav1.ConditionUnknown, controlplanev1.MachineEtcdMemberInspectionFailedReason
		condition.Message = "* The operator of etcd does not run etcd on Node " + node
	}
	return condition
}
