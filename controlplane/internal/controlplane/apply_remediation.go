// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	deprecated "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"
	"sigs.k8s.io/cluster-api/util/patch"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// remediate tells the unhealthy Machines what becomes of them, and deletes the one whose turn it is (DESIGN D26). What is recorded triggers
// the pass that deletes.
func (r *Reconciler) remediate(ctx context.Context, v *view.View, d plan.RemediationDecision) error {
	errs := make([]error, 0, len(d.Recovered)+len(d.Verdicts))
	for _, m := range d.Recovered {
		errs = append(errs, r.forgetRemediation(ctx, v, m.DeepCopy()))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Verdicts)) {
		machine, verdict := v.Machines.Owned[name].DeepCopy(), d.Verdicts[name]
		told := conditions.GetReason(machine, clusterv1.MachineOwnerRemediatedCondition) == verdict.Reason
		err := r.tellVerdict(ctx, v, machine, verdict)
		// What was told in this pass has changed the Machine, and only one that is as it was read is deleted: the next pass does.
		if err == nil && told && d.Delete != nil && d.Delete.Name == name {
			err = r.deleteMachines(ctx, v, []*clusterv1.Machine{machine}, "its health check fails")
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return kerrors.NewAggregate(errs)
}

// tellVerdict sets the condition OwnerRemediated of a Machine, in both forms: Cluster API and Metal3 read different ones.
func (r *Reconciler) tellVerdict(ctx context.Context, v *view.View, m *clusterv1.Machine, verdict plan.Verdict) error {
	return r.patchRemediated(ctx, v, m, func() {
		reason := clusterv1.WaitingForRemediationV1Beta1Reason
		if verdict.Reason == controlplanev1.MachineRemediationDeletingReason {
			reason = clusterv1.RemediationInProgressV1Beta1Reason
		}
		deprecated.MarkFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition, reason, clusterv1.ConditionSeverityWarning, "%s",
			verdict.Message)
		bounded.SetCondition(m, metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: verdict.Reason, Message: verdict.Message,
		})
	})
}

// forgetRemediation removes the condition OwnerRemediated from a Machine that is healthy again.
func (r *Reconciler) forgetRemediation(ctx context.Context, v *view.View, m *clusterv1.Machine) error {
	return r.patchRemediated(ctx, v, m, func() {
		deprecated.Delete(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		conditions.Delete(m, clusterv1.MachineOwnerRemediatedCondition)
	})
}

// patchRemediated writes what a change makes of the condition OwnerRemediated.
func (r *Reconciler) patchRemediated(ctx context.Context, v *view.View, m *clusterv1.Machine, change func()) error {
	defer r.wroteMachine(v, m)
	return r.patchConditions(ctx, m, []string{clusterv1.MachineOwnerRemediatedCondition}, change, patch.WithOwnedV1Beta1Conditions{
		Conditions: []clusterv1.ConditionType{ //nolint:staticcheck // Metal3Remediation reads the deprecated condition.
			clusterv1.MachineOwnerRemediatedV1Beta1Condition,
		},
	})
}
