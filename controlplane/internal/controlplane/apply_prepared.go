// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// discardPrepared deletes what was made for Machines that are not created any more, or not from this spec. The config goes last: by it a
// later pass finds the rest. Machine and infrastructure machine are read past the cache: a Machine that the cache does not show yet keeps
// both, and an infrastructure machine that it does not show yet would stay behind without its config.
func (r *Reconciler) discardPrepared(ctx context.Context, v *view.View, d plan.MachinesDecision) error {
	for _, prepared := range d.Discard {
		machine := &clusterv1.Machine{}
		err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(prepared.Config), machine)
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Machine %s before what was made for it is deleted: %w", klog.KObj(prepared.Config), err)
		}
		const why = "its Machine was never created, and is not wanted as it would have been"
		infraMachine, err := infrastructure.Get(ctx, r.APIReader, preparedReference(v, prepared.Config.Name), prepared.Config.Namespace)
		if err != nil {
			return fmt.Errorf("read the infrastructure machine %s before it is deleted: %w", klog.KObj(prepared.Config), err)
		}
		if infraMachine != nil && onlyPrepared(v, infraMachine) {
			if err := kube.DeleteUnchanged(ctx, r.Client, infraMachine, why); err != nil {
				return err
			}
		}
		if err := kube.DeleteUnchanged(ctx, r.Client, prepared.Config, why); err != nil {
			return err
		}
	}
	return nil
}
