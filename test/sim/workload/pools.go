// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// showPools writes what the machine-config operator says of its pools. A pool is updating also while a host of it that has the right
// configuration is cordoned or not ready (machine-config-operator, pkg/controller/node/status.go).
func (c *cluster) showPools(ctx context.Context, spec assisted.ClusterSpec, reports []upgrade.Pool) error {
	for _, report := range reports {
		pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: report.Name}}
		err := c.client.Get(ctx, client.ObjectKeyFromObject(pool), pool)
		if apierrors.IsNotFound(err) {
			err = c.client.Create(ctx, pool)
		}
		if err != nil {
			return fmt.Errorf("cannot read MachineConfigPool %s of cluster %s: %w", report.Name, spec.Key, err)
		}
		if before := pool.DeepCopy(); before.Spec.Configuration.Name != report.Target {
			pool.Spec.Configuration.Name = report.Target
			if err := c.client.Patch(ctx, pool, client.MergeFrom(before)); err != nil {
				return fmt.Errorf("cannot write MachineConfigPool %s of cluster %s: %w", report.Name, spec.Key, err)
			}
		}
		before := pool.DeepCopy()
		showPool(&pool.Status, report)
		if equality.Semantic.DeepEqual(before.Status, pool.Status) {
			continue
		}
		if err := c.client.Status().Patch(ctx, pool, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("cannot write the status of MachineConfigPool %s of cluster %s: %w", report.Name, spec.Key, err)
		}
	}
	return nil
}

// showPool makes the status of a pool what the operator reports.
func showPool(status *machineconfigv1.MachineConfigPoolStatus, report upgrade.Pool) {
	status.Configuration.Name = report.Current
	status.MachineCount, status.UpdatedMachineCount = int32(report.Machines), int32(report.Updated)
	status.ReadyMachineCount, status.UnavailableMachineCount = int32(report.Ready), int32(report.Unavailable)
	status.DegradedMachineCount = int32(report.Degraded)
	broken := report.Failure != ""
	reason := ""
	if broken {
		reason = "1 nodes are reporting degraded status on sync"
	}
	setPool(status, machineconfigv1.MachineConfigPoolUpdated, report.IsUpdated, "", report.UpdatedMessage)
	setPool(status, machineconfigv1.MachineConfigPoolUpdating, report.IsUpdating, "", report.UpdatingMessage)
	setPool(status, machineconfigv1.MachineConfigPoolNodeDegraded, broken, reason, report.Failure)
	setPool(status, machineconfigv1.MachineConfigPoolDegraded, broken, "", "")
}

// setPool sets a condition of a pool, with the time when its status changed.
func setPool(
	status *machineconfigv1.MachineConfigPoolStatus, kind machineconfigv1.MachineConfigPoolConditionType, is bool, reason, message string,
) {
	c := machineconfigv1.MachineConfigPoolCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now().Rfc3339Copy(),
	}
	if is {
		c.Status = corev1.ConditionTrue
	}
	for i, former := range status.Conditions {
		if former.Type != kind {
			continue
		}
		if former.Status == c.Status {
			c.LastTransitionTime = former.LastTransitionTime
		}
		status.Conditions[i] = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}

func ready(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
