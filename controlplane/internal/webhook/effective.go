// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

// allRoles are those whose disks are encrypted when diskEncryption.roles is not set.
var allRoles = []controlplanev1.HostRole{controlplanev1.HostRoleControlPlane, controlplanev1.HostRoleArbiter, controlplanev1.HostRoleWorker}

// effective is spec.install with its defaults and with sets in one order, so that two of them are equal when they mean the same. Of an
// initialized control plane this is so for all fields. While the installation runs, it is so for those only whose forms all make the same
// AgentClusterInstall: another one is what the condition InstallationMatchesSpec takes for a change that came too late.
func effective(install controlplanev1.InstallSpec, initialized bool) controlplanev1.InstallSpec {
	e := *install.DeepCopy()
	e.SchedulableControlPlane = new(ptr.Deref(e.SchedulableControlPlane, false))
	e.HoldInstallation = new(ptr.Deref(e.HoldInstallation, false))
	e.FIPS = new(ptr.Deref(e.FIPS, false))
	e.WorkerWaitTimeoutSeconds = new(ptr.Deref(e.WorkerWaitTimeoutSeconds, plan.DefaultWorkerWaitTimeoutSeconds))
	if e.DiskEncryption.Mode != "" && len(e.DiskEncryption.Roles) == 0 {
		e.DiskEncryption.Roles = slices.Clone(allRoles)
	}
	slices.Sort(e.DiskEncryption.Roles)
	if !initialized {
		return e
	}
	e.LoadBalancer.Type = cmp.Or(e.LoadBalancer.Type, controlplanev1.LoadBalancerClusterManaged)
	e.CPUPartitioning = cmp.Or(e.CPUPartitioning, controlplanev1.CPUPartitioningNone)
	e.Hyperthreading = controlplanev1.HyperthreadingSpec{
		ControlPlane: cmp.Or(e.Hyperthreading.ControlPlane, controlplanev1.HyperthreadingEnabled),
		Arbiter:      cmp.Or(e.Hyperthreading.Arbiter, controlplanev1.HyperthreadingEnabled),
		Worker:       cmp.Or(e.Hyperthreading.Worker, controlplanev1.HyperthreadingEnabled),
	}
	for _, set := range [][]string{
		e.NTPSources, e.Proxy.NoProxy, e.Capabilities.Additional, e.IgnoredValidations.Cluster, e.IgnoredValidations.Host,
	} {
		slices.Sort(set)
	}
	slices.SortFunc(e.ManifestsConfigMapRefs, func(a, b controlplanev1.LocalConfigMapReference) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(e.DiskEncryption.TangServers, func(a, b controlplanev1.TangServer) int { return strings.Compare(a.URL, b.URL) })
	return e
}
