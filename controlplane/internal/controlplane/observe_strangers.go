// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"sort"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// observeStrangers finds Agents of other namespaces that are bound to the ClusterDeployment: assisted-service counts them. A manager of one
// namespace does not see them.
func (r *Reconciler) observeStrangers(ctx context.Context, v *view.View) error {
	if v.Install.AgentClusterInstall == nil || unmetRequirements(v) == "" {
		return nil
	}
	list := &assisted.AgentList{}
	// No copies are made of the Agents of all namespaces, so none may be changed.
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Agents of all namespaces: %w", err)
	}
	for i := range list.Items {
		a := &list.Items[i]
		if a.Namespace != v.ControlPlane.Namespace && a.BoundTo(v.ControlPlane.Namespace, v.ControlPlane.Name) {
			v.Install.Strangers = append(v.Install.Strangers, klog.KObj(a).String())
		}
	}
	sort.Strings(v.Install.Strangers)
	return nil
}
