// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"sort"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// observeStrangers finds Agents of other namespaces that are bound to the ClusterDeployment: assisted-service counts them. A manager of one
// namespace does not see them.
func (r *Reconciler) observeStrangers(ctx context.Context, s *scope) error {
	if s.install == nil || unmetRequirements(s) == "" {
		return nil
	}
	list := &assisted.AgentList{}
	// No copies are made of the Agents of all namespaces, so none may be changed.
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Agents of all namespaces: %w", err)
	}
	for i := range list.Items {
		a := &list.Items[i]
		if a.Namespace != s.controlPlane.Namespace && a.BoundTo(s.controlPlane.Namespace, s.controlPlane.Name) {
			s.strangers = append(s.strangers, klog.KObj(a).String())
		}
	}
	sort.Strings(s.strangers)
	return nil
}
