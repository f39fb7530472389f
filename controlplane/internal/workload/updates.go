// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controlPlanePool is the MachineConfigPool of the control plane's hosts.
const controlPlanePool = "master"

// Updates is what an installed cluster says of changes that restart the hosts of its control plane. A condition that is not reported is
// Unknown.
type Updates struct {
	// PoolUpdating is True while the hosts of the control plane get another configuration, for which they are drained and restarted one after
	// the other, and PoolDegraded while one of them cannot be changed.
	PoolUpdating, PoolDegraded OperatorCondition
	// PoolPaused: somebody has paused the pool, so that no host of it begins to get another configuration until that ends. PoolUpdating is
	// False meanwhile, also while a host that had begun goes on. PoolBehind: a host has not got the configuration that it should have.
	PoolPaused, PoolBehind bool
	// PoolAway is how many of its hosts are cordoned, not ready, or being changed.
	PoolAway int
}

// Updates reads from the connection's cache, which begins to hold MachineConfigPools with the first call: a cluster that nobody has changed
// is not asked.
func (c Cached) Updates(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*Updates, error) {
	ofControlPlane := func(o client.Object) bool { return o.GetName() == controlPlanePool }
	watch := subscriber.to("machineconfigpools", &machineconfigv1.MachineConfigPool{}, ofControlPlane).Resting(subscriber.Waits)
	remote, err := c.watched(ctx, cluster, "MachineConfigPools", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	pool := &machineconfigv1.MachineConfigPool{}
	if err := remote.Get(ctx, client.ObjectKey{Name: controlPlanePool}, pool); err != nil {
		return nil, fmt.Errorf("read MachineConfigPool %s of Cluster %s: %w", controlPlanePool, cluster, err)
	}
	return UpdatesOf(pool), nil
}

// UpdatesOf is what the pool of the control plane's hosts says.
func UpdatesOf(pool *machineconfigv1.MachineConfigPool) *Updates {
	return &Updates{
		PoolUpdating: poolUpdating(pool), PoolDegraded: poolCondition(pool, machineconfigv1.MachineConfigPoolDegraded),
		PoolPaused: pool.Spec.Paused, PoolBehind: !upToDate(pool), PoolAway: int(pool.Status.UnavailableMachineCount),
	}
}

// poolUpdating is whether hosts of a pool get another configuration. The condition Updating alone does not say so: it is True too while a
// host that has the right configuration is cordoned or not ready, for as long as it is, which for a dead host is for ever
// (machine-config-operator, pkg/controller/node/status.go).
func poolUpdating(pool *machineconfigv1.MachineConfigPool) OperatorCondition {
	updating := poolCondition(pool, machineconfigv1.MachineConfigPoolUpdating)
	if updating.True() && upToDate(pool) {
		updating.Status, updating.Message = configv1.ConditionFalse, "every host has the configuration that it should have"
	}
	return updating
}

// upToDate reports whether every host of a pool has the configuration that it should have.
func upToDate(pool *machineconfigv1.MachineConfigPool) bool {
	return pool.Status.MachineCount > 0 && pool.Status.UpdatedMachineCount == pool.Status.MachineCount &&
		pool.Status.Configuration.Name == pool.Spec.Configuration.Name
}

func poolCondition(
	pool *machineconfigv1.MachineConfigPool, conditionType machineconfigv1.MachineConfigPoolConditionType,
) OperatorCondition {
	for _, c := range pool.Status.Conditions {
		if c.Type == conditionType {
			return OperatorCondition{
				Status: configv1.ConditionStatus(c.Status), Message: oneLine(cmp.Or(c.Message, c.Reason)), Since: c.LastTransitionTime.Time,
			}
		}
	}
	return unreported()
}
