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
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// observeWorkload asks the installed cluster for how long it has not answered, and which cluster it is while that decides something.
func (r *Reconciler) observeWorkload(ctx context.Context, v *view.View) error {
	if v.Record != nil && (!v.Initialized() || v.Install.AgentClusterInstall == nil && len(v.Install.MissingCRDs) == 0) {
		var err error
		v.Workload.ClusterID, err = r.Identity.ClusterID(ctx, v.ClusterKey())
		v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	}
	if v.Initializing = !v.Initialized() && v.Verified(); v.Initializing {
		v.Workload.ExpectedSince, v.Workload.SettledFrom = v.Now, v.Now.Add(r.RemoteConditionsGracePeriod)
	}
	if v.Initialized() {
		v.Workload.LastAnswer = r.Health.LastAnswer(ctx, v.ClusterKey())
		v.Workload.Known = !v.Workload.LastAnswer.IsZero()
		since := v.Workload.LastAnswer
		if since.IsZero() {
			since = v.Workload.ExpectedSince // A new manager has not probed yet; the condition of the one before stands for the grace period.
		}
		v.Workload.Down = v.Now.Sub(since) > r.RemoteConditionsGracePeriod
		v.Workload.Settling = !v.Now.After(v.Workload.SettledFrom)
	}
	if v.Install.Phase() == assisted.PhaseFailed && v.Install.ClusterDeployment != nil {
		// The probes of an attempt before concern another cluster.
		v.Workload.Answered = r.Health.LastAnswer(ctx, v.ClusterKey()).After(v.Install.ClusterDeployment.CreationTimestamp.Time)
	}
	return nil
}

// observeHealth reads how the control plane of a cluster is that has been recognised: what another one says is not read, so nothing of it
// is remembered either.
func (r *Reconciler) observeHealth(ctx context.Context, v *view.View, subscriber workload.Subscriber) {
	cluster := v.ClusterKey()
	operators, unread := r.Health.Operators(ctx, cluster, subscriber)
	etcd, unheard := r.Etcd.EtcdOperator(ctx, cluster, subscriber)
	v.Workload.Operators, v.Workload.Etcd = operators, etcd
	v.Workload.Problem = errors.Join(v.Workload.Problem, unread, unheard)
}

// subscriber is woken by changes in the installed cluster to reconcile its control plane.
func (r *Reconciler) subscriber(v *view.View) workload.Subscriber {
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v.ControlPlane)}
	return workload.Subscriber{Controller: r.controller, Request: request, Waits: plan.Waits(v)}
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
