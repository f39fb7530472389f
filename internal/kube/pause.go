// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/paused"

	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// HoldPaused reports whether an object or its Cluster, nil when it is gone, is paused. If so, it writes the object's condition Paused;
// else it sets the condition in memory, for the caller to write with all that it has to say at the end of the pass: Cluster API's function
// would write it at once, and ask for another pass.
func HoldPaused(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, o paused.ConditionSetter) (bool, error) {
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) || annotations.HasPaused(o) {
		_, _, err := paused.EnsurePausedCondition(ctx, c, cluster, o)
		return true, err
	}
	bounded.SetCondition(o, metav1.Condition{
		Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason, ObservedGeneration: o.GetGeneration(),
	})
	return false, nil
}
