// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// observeWorkload asks the installed cluster for how long it has not answered and how its control plane is, and which cluster it is while
// that decides something.
func (r *Reconciler) observeWorkload(ctx context.Context, s *scope) error {
	if s.initialized() {
		s.lastAnswer = r.Health.LastAnswer(ctx, s.clusterKey())
		s.connectionKnown = !s.lastAnswer.IsZero()
		since := s.lastAnswer
		if since.IsZero() {
			since = s.expected // A new manager has not probed yet; the condition of the one before stands for the grace period.
		}
		s.connectionDown = s.now.Sub(since) > r.RemoteConditionsGracePeriod
		s.settling = s.now.Sub(s.expected) <= r.RemoteConditionsGracePeriod
		subscriber := workload.Subscriber{
			Controller: r.controller, Request: ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.controlPlane)},
		}
		s.operators, s.apiProblem = r.Health.Operators(ctx, s.clusterKey(), subscriber)
	}
	if s.recorded && (!s.initialized() || s.install == nil && len(s.missingCRDs) == 0) {
		var err error
		s.clusterID, err = r.Identity.ClusterID(ctx, s.clusterKey())
		s.apiProblem = errors.Join(s.apiProblem, err)
	}
	return nil
}

// answerExpectedSince is since when the API of an initialized cluster is expected to answer this manager: since the manager acts, and no
// longer than the control plane is known to be initialized, and is not paused any more, which may have come to this management cluster
// later.
func answerExpectedSince(cp *controlplanev1.OpenshiftAssistedControlPlane, leading time.Time) time.Time {
	since := leading
	for conditionType, status := range map[string]metav1.ConditionStatus{
		controlplanev1.InitializedCondition: metav1.ConditionTrue, clusterv1.PausedCondition: metav1.ConditionFalse,
	} {
		c := conditions.Get(cp, conditionType)
		if c != nil && c.Status == status && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}
