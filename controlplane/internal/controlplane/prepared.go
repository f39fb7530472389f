// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// observePrepared finds what was made for Machines that do not exist (CONTRACT CP-35). What nobody allows the manager to read, it could not
// delete either.
func (r *Reconciler) observePrepared(ctx context.Context, v *view.View) error {
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	err := r.Client.List(ctx, configs, append(inCluster(v), client.HasLabels{clusterv1.MachineControlPlaneLabel})...)
	if err != nil {
		return fmt.Errorf("list OpenshiftAssistedConfigs: %w", err)
	}
	for i := range configs.Items {
		config := &configs.Items[i]
		if v.Machines.Owned[config.Name] != nil || !onlyPrepared(v, config) {
			continue
		}
		template := v.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef
		infraMachine, err := r.Infrastructure.Get(ctx, clusterv1.ContractVersionedObjectReference{
			APIGroup: template.APIGroup, Kind: strings.TrimSuffix(template.Kind, clusterv1.TemplateSuffix), Name: config.Name,
		}, config.Namespace)
		var notAllowed *infrastructure.NotAllowedError
		if errors.As(err, &notAllowed) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the infrastructure machine that was made with OpenshiftAssistedConfig %s: %w", klog.KObj(config), err)
		}
		if infraMachine != nil && !onlyPrepared(v, infraMachine) {
			infraMachine = nil // Somebody else's: creating the Machine says so.
		}
		v.Machines.Prepared = append(v.Machines.Prepared, view.Prepared{Config: config, Infra: infraMachine})
	}
	slices.SortFunc(v.Machines.Prepared, func(a, b view.Prepared) int { return strings.Compare(a.Config.Name, b.Config.Name) })
	return nil
}

// onlyPrepared reports whether the control plane is the only owner of an object. Cluster API makes the Machine the owner once it exists.
func onlyPrepared(v *view.View, o client.Object) bool {
	return len(o.GetOwnerReferences()) == 1 && kube.OwnedBy(o, v.ControlPlane) && o.GetDeletionTimestamp().IsZero()
}

// discardPrepared deletes what was made for Machines that are not created any more, or not from this spec. The config goes last: by it a
// later pass finds the rest. A Machine that the cache does not show yet keeps both.
func (r *Reconciler) discardPrepared(ctx context.Context, d plan.MachinesDecision) error {
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
		if prepared.Infra != nil {
			if err := kube.DeleteUnchanged(ctx, r.Client, prepared.Infra, why); err != nil {
				return err
			}
		}
		if err := kube.DeleteUnchanged(ctx, r.Client, prepared.Config, why); err != nil {
			return err
		}
	}
	return nil
}
