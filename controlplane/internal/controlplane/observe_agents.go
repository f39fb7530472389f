// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// observeAgents finds the Agents that are bound to the ClusterDeployment, and those that its first installation was closed with: when a
// ClusterDeployment is deleted, assisted-service unbinds its Agents. An Agent has some 20 KB, and a namespace may have thousands: the cache
// makes no copies of them, so none may be changed.
func (r *Reconciler) observeAgents(ctx context.Context, v *view.View) error {
	key, list := client.ObjectKeyFromObject(v.ControlPlane), &assisted.AgentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), index.BoundTo(key), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Agents: %w", err)
	}
	for i := range list.Items {
		v.Install.Agents = append(v.Install.Agents, &list.Items[i])
	}
	if install := v.Install.AgentClusterInstall; install != nil {
		names, _ := assisted.DayOneAgents(install)
		for _, name := range names {
			if slices.ContainsFunc(v.Install.Agents, func(a *assisted.Agent) bool { return a.Name == name }) {
				continue
			}
			agent, err := kube.GetOrNil[assisted.Agent](ctx, r.Client, types.NamespacedName{Namespace: key.Namespace, Name: name})
			if err != nil {
				return err
			}
			if agent != nil {
				v.Install.Agents = append(v.Install.Agents, agent)
			}
		}
	}
	slices.SortFunc(v.Install.Agents, func(a, b *assisted.Agent) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// observeStrangers finds Agents of other namespaces that are bound to the ClusterDeployment: assisted-service counts them. A manager of one
// namespace does not see them.
func (r *Reconciler) observeStrangers(ctx context.Context, v *view.View) error {
	if v.Install.AgentClusterInstall == nil || unmetRequirements(v) == "" {
		return nil
	}
	list := &assisted.AgentList{}
	if err := r.Client.List(ctx, list, index.BoundTo(client.ObjectKeyFromObject(v.ControlPlane)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Agents of all namespaces: %w", err)
	}
	for i := range list.Items {
		if a := &list.Items[i]; a.Namespace != v.ControlPlane.Namespace {
			v.Install.Strangers = append(v.Install.Strangers, klog.KObj(a).String())
		}
	}
	sort.Strings(v.Install.Strangers)
	return nil
}
