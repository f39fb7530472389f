// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// pools are the MachineConfigPools that every cluster has.
var pools = []string{"master", "worker"}

// syncPools writes what the machine-config operator says of its pools. Every host has the configuration that it should have; a pool is
// updating nevertheless while a host of it is cordoned or not ready (machine-config-operator, pkg/controller/node/status.go).
func (c *cluster) syncPools(ctx context.Context, spec assisted.ClusterSpec) error {
	nodes := &corev1.NodeList{}
	if err := c.client.List(ctx, nodes); err != nil {
		return fmt.Errorf("cannot list the Nodes of cluster %s: %w", spec.Key, err)
	}
	for _, name := range pools {
		pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return fmt.Errorf("cannot read MachineConfigPool %s of cluster %s: %w", name, spec.Key, err)
		}
		before := pool.DeepCopy()
		countHosts(pool, nodes.Items)
		if equality.Semantic.DeepEqual(before.Status, pool.Status) {
			continue
		}
		if err := c.client.Status().Patch(ctx, pool, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("cannot write MachineConfigPool %s of cluster %s: %w", name, spec.Key, err)
		}
	}
	return nil
}

// countHosts makes the status of a pool what its Nodes are.
func countHosts(pool *machineconfigv1.MachineConfigPool, nodes []corev1.Node) {
	status := &pool.Status
	status.MachineCount, status.ReadyMachineCount, status.Configuration = 0, 0, pool.Spec.Configuration
	for _, node := range nodes {
		if _, ok := node.Labels["node-role.kubernetes.io/"+pool.Name]; !ok {
			continue
		}
		status.MachineCount++
		if ready(node) && !node.Spec.Unschedulable {
			status.ReadyMachineCount++
		}
	}
	status.UpdatedMachineCount, status.UnavailableMachineCount = status.MachineCount, status.MachineCount-status.ReadyMachineCount
	done := status.UnavailableMachineCount == 0
	setPool(status, machineconfigv1.MachineConfigPoolUpdated, done)
	setPool(status, machineconfigv1.MachineConfigPoolUpdating, !done)
	setPool(status, machineconfigv1.MachineConfigPoolDegraded, false)
}

// setPool sets a condition of a pool, with the time when it changed.
func setPool(status *machineconfigv1.MachineConfigPoolStatus, kind machineconfigv1.MachineConfigPoolConditionType, is bool) {
	c := machineconfigv1.MachineConfigPoolCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if is {
		c.Status = corev1.ConditionTrue
	}
	for i, former := range status.Conditions {
		if former.Type != kind {
			continue
		}
		if former.Status != c.Status {
			status.Conditions[i] = c
		}
		return
	}
	status.Conditions = append(status.Conditions, c)
}

func ready(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
