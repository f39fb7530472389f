// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
)

// group is a MachineDeployment with its MachineSets.
type group struct {
	deployment *clusterv1.MachineDeployment
	sets       []set
}

// set is a MachineSet with its Machines.
type set struct {
	set      *clusterv1.MachineSet
	machines []*clusterv1.Machine
}

// observe finds the MachineDeployments of a Cluster with what they control, each in the order of names. A write changes a copy: the cache
// makes none of what may be thousands.
func (r *Reconciler) observe(ctx context.Context, cluster *clusterv1.Cluster) ([]group, error) {
	ofCluster := append(index.OfCluster(client.ObjectKeyFromObject(cluster)), client.UnsafeDisableDeepCopy)
	deployments, sets, machines := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{}
	if err := r.Client.List(ctx, deployments, ofCluster...); err != nil {
		return nil, fmt.Errorf("list MachineDeployments: %w", err)
	}
	if len(deployments.Items) == 0 {
		return nil, nil
	}
	if err := r.Client.List(ctx, sets, ofCluster...); err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	if err := r.Client.List(ctx, machines, ofCluster...); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	groups := make([]group, 0, len(deployments.Items))
	for _, deployment := range byName(pointers(deployments.Items)) {
		g := group{deployment: deployment}
		for _, machineSet := range byName(controlledBy(deployment, pointers(sets.Items))) {
			g.sets = append(g.sets, set{set: machineSet, machines: byName(controlledBy(machineSet, pointers(machines.Items)))})
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// controlledBy returns the objects whose controller the owner is.
func controlledBy[T client.Object](owner client.Object, objects []T) []T {
	return slices.DeleteFunc(objects, func(o T) bool { return !metav1.IsControlledBy(o, owner) })
}

// byName sorts objects, and returns them.
func byName[T client.Object](objects []T) []T {
	slices.SortFunc(objects, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objects
}
