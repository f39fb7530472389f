// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// observePrepared finds what was made for Machines that do not exist (CONTRACT CP-35). What nobody allows the manager to read, it could not
// delete either.
func (r *Reconciler) observePrepared(ctx context.Context, v *view.View) error {
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	// Deleting one changes nothing of it in memory, so no copies are needed.
	ofControlPlanes := append(inCluster(v), client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy)
	err := r.Client.List(ctx, configs, ofControlPlanes...)
	if err != nil {
		return fmt.Errorf("list OpenshiftAssistedConfigs: %w", err)
	}
	for i := range configs.Items {
		config := &configs.Items[i]
		if v.Machines.Owned[config.Name] != nil || !onlyPrepared(v, config) {
			continue
		}
		infraMachine, err := r.Infrastructure.Get(ctx, preparedReference(v, config.Name), config.Namespace)
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

// preparedReference names the infrastructure machine that is made for a Machine of that name, by the kind of the template.
func preparedReference(v *view.View, name string) clusterv1.ContractVersionedObjectReference {
	template := v.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef
	return clusterv1.ContractVersionedObjectReference{
		APIGroup: template.APIGroup, Kind: strings.TrimSuffix(template.Kind, clusterv1.TemplateSuffix), Name: name,
	}
}

// onlyPrepared reports whether the control plane is the only owner of an object. Cluster API makes the Machine the owner once it exists.
func onlyPrepared(v *view.View, o client.Object) bool {
	return len(o.GetOwnerReferences()) == 1 && kube.OwnedBy(o, v.ControlPlane) && o.GetDeletionTimestamp().IsZero()
}
