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

const (
	// controlPlanePool is the MachineConfigPool of the control plane's hosts.
	controlPlanePool = "master"

	// versionFailing is the condition of a ClusterVersion whose upgrade, or whose upkeep, does not succeed.
	versionFailing = "Failing"
)

// Updates is what an installed cluster says of changes that restart its hosts. A condition that is not reported is Unknown.
type Updates struct {
	// Upgrading is True while another release is being installed, and Failing while the release that is wanted cannot be.
	Upgrading, Failing OperatorCondition
	// PoolUpdating is True while the hosts of the control plane get another configuration, for which they are drained and restarted one after
	// the other, and PoolDegraded while one of them cannot be changed.
	PoolUpdating, PoolDegraded OperatorCondition
}

// Updates reads from the connection's cache, which begins to hold ClusterVersions and MachineConfigPools with the first call: a cluster
// that nobody changes is not asked.
func (c Cached) Updates(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*Updates, error) {
	named := func(name string) func(client.Object) bool {
		return func(o client.Object) bool { return o.GetName() == name }
	}
	watch := subscriber.to("clusterversions", &configv1.ClusterVersion{}, named(clusterVersion))
	if remote, err := c.watched(ctx, cluster, "ClusterVersions", watch); err != nil || remote == nil {
		return nil, err
	}
	watch = subscriber.to("machineconfigpools", &machineconfigv1.MachineConfigPool{}, named(controlPlanePool))
	remote, err := c.watched(ctx, cluster, "MachineConfigPools", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	version, pool := &configv1.ClusterVersion{}, &machineconfigv1.MachineConfigPool{}
	if err := remote.Get(ctx, client.ObjectKey{Name: clusterVersion}, version); err != nil {
		return nil, fmt.Errorf("read ClusterVersion %s of Cluster %s: %w", clusterVersion, cluster, err)
	}
	if err := remote.Get(ctx, client.ObjectKey{Name: controlPlanePool}, pool); err != nil {
		return nil, fmt.Errorf("read MachineConfigPool %s of Cluster %s: %w", controlPlanePool, cluster, err)
	}
	return updatesOf(version, pool), nil
}

func updatesOf(version *configv1.ClusterVersion, pool *machineconfigv1.MachineConfigPool) *Updates {
	return &Updates{
		Upgrading:    operatorCondition(version.Status.Conditions, configv1.OperatorProgressing),
		Failing:      operatorCondition(version.Status.Conditions, versionFailing),
		PoolUpdating: poolUpdating(pool),
		PoolDegraded: poolCondition(pool, machineconfigv1.MachineConfigPoolDegraded),
	}
}

// poolUpdating is whether hosts of a pool get another configuration. The condition Updating alone does not say so: it is True too while a
// host that has the right configuration is cordoned or not ready, for as long as it is, which for a dead host is for ever
// (machine-config-operator, pkg/controller/node/status.go).
func poolUpdating(pool *machineconfigv1.MachineConfigPool) OperatorCondition {
	updating := poolCondition(pool, machineconfigv1.MachineConfigPoolUpdating)
	done := pool.Status.MachineCount > 0 && pool.Status.UpdatedMachineCount == pool.Status.MachineCount
	if updating.True() && done && pool.Status.Configuration.Name == pool.Spec.Configuration.Name {
		updating.Status, updating.Message = configv1.ConditionFalse, "every host has the configuration that it should have"
	}
	return updating
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
