// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"sort"
	"strconv"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// missingMachines decides which Machines to create. All are created at once before the installation begins, because it needs every host
// (CONTRACT KCP-4), none while it runs, and one after the other afterwards: blockers say what has to happen first.
func missingMachines(v *view.View) (create, blockers []string) {
	missing := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)) - len(v.Machines.Owned)
	if missing <= 0 {
		return nil, nil
	}
	if v.Life.Installed() {
		return nextMachine(v)
	}
	if v.Install.AgentClusterInstall != nil && !mayReopen(v) {
		// Their hosts would all join etcd in the moment in which the installation is complete.
		return nil, []string{"The installation has begun: more Machines are created one after the other when it is complete"}
	}
	return plan.FreeMachineNames(v.ControlPlane.Name, missing, sets.New(v.Machines.Owned.Names()...)), nil
}

// unsettled lists the Machines that are on their way into the cluster or out of it, in words.
func unsettled(machines collections.Machines) []string {
	var problems []string
	for _, m := range machines.SortedByCreationTimestamp() {
		switch {
		case !m.DeletionTimestamp.IsZero():
			problems = append(problems, fmt.Sprintf("Machine %s is being deleted", m.Name))
		case !m.Status.NodeRef.IsDefined():
			problems = append(problems, fmt.Sprintf("Machine %s has no Node yet", m.Name))
		}
	}
	return problems
}

// mayRemoveMachines reports whether a surplus Machine can go. It is so only until the installation begins: later, a member of etcd would be
// lost.
func mayRemoveMachines(v *view.View) bool {
	if v.Install.AgentClusterInstall == nil {
		return !v.Life.Installed()
	}
	_, closed := assisted.DayOneAgents(v.Install.AgentClusterInstall)
	return changeable(v) && !closed
}

// surplusMachines decides which Machines to delete.
func surplusMachines(v *view.View) []*clusterv1.Machine {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	if len(v.Machines.Owned) <= replicas || !mayRemoveMachines(v) {
		return nil
	}
	living := v.Machines.Owned.Filter(collections.Not(collections.HasDeletionTimestamp))
	names := living.Names()
	sort.Strings(names)
	var surplus []*clusterv1.Machine
	for _, name := range names[min(replicas, len(names)):] {
		surplus = append(surplus, living[name])
	}
	return surplus
}

// nextMachine decides about a Machine that an installed cluster misses. Its host becomes a member of etcd, so etcd has to be well first,
// and may count no member whose Machine is gone.
func nextMachine(v *view.View) (create, blockers []string) {
	if blockers = append(unsettled(v.Machines.Owned), unfitEtcd(v)...); len(blockers) > 0 {
		return nil, blockers
	}
	number := v.ControlPlane.Annotations[controlplanev1.NextMachineAnnotation]
	if number == "" || nextMachineToWrite(v) != "" {
		return nil, nil // The annotation is written first, which triggers a reconcile.
	}
	return []string{v.ControlPlane.Name + "-" + number}, nil
}

// nextMachineToWrite is the number that the next Machine of an installed cluster is to have; empty when the annotation says so.
func nextMachineToWrite(v *view.View) string {
	if !v.Life.Installed() && recordToWrite(v) == "" {
		return ""
	}
	recorded, err := strconv.Atoi(v.ControlPlane.Annotations[controlplanev1.NextMachineAnnotation])
	next := plan.NextMachine(v.ControlPlane.Name, v.Machines.Owned.Names())
	if err != nil {
		// There is no record, or somebody broke it: as many Machines as were installed have had a number at least.
		return strconv.Itoa(max(next, int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))))
	}
	if next <= recorded {
		return ""
	}
	return strconv.Itoa(next)
}

// unfitEtcd says why etcd takes no member now; empty when it does.
func unfitEtcd(v *view.View) []string {
	etcd, known := v.Workload.Operators[workload.OperatorEtcd]
	switch {
	case !known:
		return []string{"The installed cluster has not said whether etcd is healthy"}
	case !etcd.Available.True() && !etcd.Available.False():
		return []string{"ClusterOperator etcd does not say whether it is available: " + etcd.Available.Message}
	case etcd.Available.False():
		return []string{"ClusterOperator etcd is not available: " + etcd.Available.Message}
	case etcd.Degraded.True():
		return []string{"ClusterOperator etcd is degraded: " + etcd.Degraded.Message}
	}
	nodes := view.Arbiters(v.ControlPlane.Spec.Install)
	for _, m := range v.Machines.Owned {
		if m.Status.NodeRef.IsDefined() {
			nodes++
		}
	}
	if members := plan.EtcdMembers(etcd.Available.Message); members > nodes {
		return []string{fmt.Sprintf("etcd has %d members and there are %d hosts of members: remove the member of the host that is gone from etcd",
			members, nodes)}
	}
	return nil
}
