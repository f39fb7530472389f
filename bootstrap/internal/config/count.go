// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/metrics"
)

// count counts what a pass has brought about, from the config as it is stored now. What the API server did not take is not counted, nor
// what is stored when somebody else has changed the config meanwhile: an earlier manager may have counted it.
func (r *Reconciler) count(ctx context.Context, s *scope, stored *bootstrapv1.OpenshiftAssistedConfig) {
	w := metrics.Written{Before: s.first, After: stored, Machine: s.machine, Now: s.now}
	if s.infraEnv != nil {
		w.ImageSince = metav1.NewTime(s.infraEnv.CreationTimestamp.Time)
	}
	metrics.Count(w, func() string { return r.days().Of(ctx, stored, s.cluster, s.machine.Spec.ClusterName) })
}

func (r *Reconciler) days() metrics.Days { return metrics.Days{Client: r.Client, Gate: r.Gate} }
