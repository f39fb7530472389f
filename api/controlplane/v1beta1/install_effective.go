// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"
)

// DefaultWorkerWaitTimeoutSeconds is used when spec.install.workerWaitTimeoutSeconds is not set.
const DefaultWorkerWaitTimeoutSeconds = 1800

// Effective is the spec as it is acted on: two specs whose effective ones are equal ask for the same cluster. Defaults are written out, and
// lists whose order means nothing are sorted. Not so the defaults that other objects and fields decide: clusterName is that of the Cluster,
// platform depends on the number of replicas, and networking on the networks of the Cluster.
func (s InstallSpec) Effective() InstallSpec {
	e := *s.DeepCopy()
	e.LoadBalancer.Type = cmp.Or(e.LoadBalancer.Type, LoadBalancerClusterManaged)
	e.SchedulableControlPlane = new(ptr.Deref(e.SchedulableControlPlane, false))
	e.HoldInstallation = new(ptr.Deref(e.HoldInstallation, false))
	e.FIPS = new(ptr.Deref(e.FIPS, false))
	e.CPUPartitioning = cmp.Or(e.CPUPartitioning, CPUPartitioningNone)
	e.WorkerWaitTimeoutSeconds = new(ptr.Deref(e.WorkerWaitTimeoutSeconds, DefaultWorkerWaitTimeoutSeconds))
	e.Hyperthreading = HyperthreadingSpec{
		ControlPlane: cmp.Or(e.Hyperthreading.ControlPlane, HyperthreadingEnabled),
		Arbiter:      cmp.Or(e.Hyperthreading.Arbiter, HyperthreadingEnabled),
		Worker:       cmp.Or(e.Hyperthreading.Worker, HyperthreadingEnabled),
	}
	if e.DiskEncryption.Mode != "" && len(e.DiskEncryption.Roles) == 0 {
		e.DiskEncryption.Roles = []HostRole{HostRoleControlPlane, HostRoleArbiter, HostRoleWorker}
	}
	slices.Sort(e.DiskEncryption.Roles)
	slices.SortFunc(e.DiskEncryption.TangServers, func(a, b TangServer) int { return cmp.Compare(a.URL, b.URL) })
	slices.SortFunc(e.ManifestsConfigMapRefs, func(a, b LocalConfigMapReference) int { return cmp.Compare(a.Name, b.Name) })
	for _, set := range [][]string{
		e.NTPSources, e.Proxy.NoProxy, e.Capabilities.Additional, e.IgnoredValidations.Cluster, e.IgnoredValidations.Host,
	} {
		slices.Sort(set)
	}
	return e
}
