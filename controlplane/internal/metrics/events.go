// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// kindControlPlane is the kind of the objects that own control-plane Machines.
const kindControlPlane = "OpenshiftAssistedControlPlane"

// Machines counts the replacements that are complete, beside what a handler does with the events of Machines.
func Machines(reader client.Reader, h handler.EventHandler) handler.EventHandler {
	return metrics.Changes{
		EventHandler: h,
		Changed: func(ctx context.Context, before, after client.Object) {
			was, ok := before.(*clusterv1.Machine)
			is, same := after.(*clusterv1.Machine)
			if ok && same && ReplacementJoined(was, is) && joinedHere(ctx, reader, is) {
				replacements.WithLabelValues(metrics.CauseUnhealthy, metrics.ReplacementCompleted).Inc()
			}
		},
		Gone: func(ctx context.Context, last client.Object) {
			if m, ok := last.(*clusterv1.Machine); ok && Outdated(m) && ownerLives(ctx, reader, m) {
				replacements.WithLabelValues(metrics.CauseOutdated, metrics.ReplacementCompleted).Inc()
			}
		},
	}
}

// ReplacementJoined reports whether a Machine that takes the place of an unhealthy one has got its Node by a change.
func ReplacementJoined(before, after *clusterv1.Machine) bool {
	return view.RemediationFor(after) != nil && !before.Status.NodeRef.IsDefined() && after.Status.NodeRef.IsDefined()
}

// Outdated reports whether a control-plane Machine was not what its control plane asks for when it was deleted. One that is unhealthy too
// is counted as such.
func Outdated(m *clusterv1.Machine) bool {
	return util.IsControlPlaneMachine(m) && !m.DeletionTimestamp.IsZero() &&
		conditions.GetReason(m, clusterv1.MachineUpToDateCondition) == controlplanev1.MachineNotUpToDateReason &&
		conditions.GetReason(m, clusterv1.MachineOwnerRemediatedCondition) != controlplanev1.MachineRemediationDeletingReason
}

func joinedHere(ctx context.Context, reader client.Reader, m *clusterv1.Machine) bool {
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}
	config, err := kube.GetOrNil[bootstrapv1.OpenshiftAssistedConfig](ctx, reader, key, client.UnsafeDisableDeepCopy)
	return err == nil && config != nil && metrics.JoinedHere(config)
}

// ownerLives reports whether the control plane of a Machine is ours and is not being deleted itself.
func ownerLives(ctx context.Context, reader client.Reader, m *clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(m)
	if owner == nil || owner.Kind != kindControlPlane {
		return false
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: owner.Name}
	cp, err := kube.GetOrNil[controlplanev1.OpenshiftAssistedControlPlane](ctx, reader, key, client.UnsafeDisableDeepCopy)
	return err == nil && cp != nil && cp.UID == owner.UID && cp.DeletionTimestamp.IsZero()
}
