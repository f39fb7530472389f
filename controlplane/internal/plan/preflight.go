// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// preflight lists, in words, what has to happen before an installed cluster gets another control-plane Machine: its host becomes a member
// of etcd (CONTRACT KCP-6). voting are the Machines that wait for their turn to leave etcd and vote in it meanwhile. They stand in nobody's
// way, and neither do those that wait to be drained: each may wait for the very Machine that is to be created.
//
// A Machine that replaces a lost one is not kept waiting by operators that say Degraded: with two of three members the operator of etcd
// says so until the third has joined, and everybody who waits for it with it.
func preflight(v *view.View, voting []string) []string {
	settled := v.Machines.Owned.Filter(func(m *clusterv1.Machine) bool { return !slices.Contains(voting, m.Name) })
	problems := append(unpropagated(v), unfitTopology(v)...)
	if v.Workload.OtherCluster != "" {
		return append(problems, OtherCluster(v)) // All else that is known is what the other one says.
	}
	if problem := v.Workload.MachineAPIProblem; problem != nil {
		problems = append(problems, unknownMachineAPI(problem))
	}
	problems = append(problems, unsettled(v, settled.Filter(func(m *clusterv1.Machine) bool { return !undrained(v, m) }))...)
	if current := view.RemediationInProgress(v.ControlPlane); current != nil {
		if m := v.Machines.Owned[current.Machine]; m != nil && view.AsksForRemediation(m) {
			problems = append(problems, fmt.Sprintf("Machine %s, which is not healthy, is deleted first", m.Name))
		}
	}
	if etcd := unfitEtcd(v, settled, len(voting)); len(etcd) > 0 {
		return append(problems, etcd...)
	}
	if !replaces(v) {
		problems = append(problems, unfitOperators(v)...)
	}
	return problems
}

// replaces reports whether the next Machine stands in for one that is lost: for one that was not healthy, or because etcd has fewer members
// than it should.
func replaces(v *view.View) bool {
	if current := view.RemediationInProgress(v.ControlPlane); current != nil && v.Machines.Owned[current.Machine] == nil {
		return true
	}
	members, _ := EtcdMembers(v.Workload.Etcd.MembersAvailable.Message)
	return members < min(minVoters, int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)))
}

// unpropagated says that the Cluster's topology is about to change the control plane.
func unpropagated(v *view.View) []string {
	if !v.Cluster.Spec.Topology.IsDefined() {
		return nil
	}
	wanted := v.Cluster.Spec.Topology.Version
	if step := v.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]; step != "" {
		wanted = step
	}
	if wanted == v.ControlPlane.Spec.Version {
		return nil
	}
	return []string{fmt.Sprintf("The Cluster's topology asks for version %s, and spec.version is %s until it is the control plane's turn",
		wanted, v.ControlPlane.Spec.Version)}
}

// unfitTopology says that no host can join the etcd of this cluster.
func unfitTopology(v *view.View) []string {
	switch {
	case v.Life == view.Mismatch:
		return []string{"Another cluster answers than the one that was installed"}
	case v.ControlPlane.Spec.Install.TwoNode != "":
		return []string{fmt.Sprintf("A host of a two-node cluster (spec.install.twoNode: %s) is not replaced",
			v.ControlPlane.Spec.Install.TwoNode)}
	case ptr.Deref(v.ControlPlane.Spec.Replicas, 0) == 1:
		return []string{"The host of a single-node cluster is not replaced: its data is lost with it. Delete the Cluster and install it again"}
	case v.Workload.MachineAPI:
		return []string{"The cluster has a Machine API that works, and adds its hosts by it"}
	}
	return nil
}

// unknownMachineAPI says that nobody knows by what the operator of etcd goes.
func unknownMachineAPI(problem error) string {
	return "It is not known whether the cluster has a Machine API that works: " + problem.Error()
}

// unsettled lists the Machines that are on their way into the cluster or out of it.
func unsettled(v *view.View, machines collections.Machines) []string {
	var problems []string
	for _, m := range machines.SortedByCreationTimestamp() {
		switch {
		case !m.DeletionTimestamp.IsZero():
			problems = append(problems, beingDeleted(m))
		case !m.Status.NodeRef.IsDefined():
			problem := fmt.Sprintf("Machine %s has no Node yet", m.Name)
			// Such as that no BareMetalHost is free, which a user has to mend.
			if c := HostProblem(v.Machines.Configs[m.Name]); c != nil {
				problem += ": " + c.Message
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

// unfitEtcd says why etcd takes no member now. It takes none while one of those that it has is not healthy, and none of a host that it
// counts already. Machines with Nodes that are not members yet are about to join.
func unfitEtcd(v *view.View, settled collections.Machines, voting int) []string {
	etcd := v.Workload.Etcd
	switch {
	case etcd == nil:
		return []string{"The installed cluster has not said how its etcd is"}
	case !etcd.MembersAvailable.True():
		return []string{"The operator of etcd does not say that its members are available: " + etcd.MembersAvailable.Message}
	case !etcd.MembersDegraded.False():
		return []string{"Members of etcd are not healthy: " + etcd.MembersDegraded.Message}
	}
	hosts := view.Arbiters(v.ControlPlane.Spec.Install)
	for _, m := range v.Machines.Owned {
		if m.Status.NodeRef.IsDefined() {
			hosts++
		}
	}
	counted, _ := EtcdMembers(etcd.MembersAvailable.Message)
	if counted == 0 {
		return []string{"The operator of etcd does not say how many members there are: " + etcd.MembersAvailable.Message}
	}
	if counted > hosts {
		return []string{fmt.Sprintf("etcd has %d members, and %d control-plane Machines have Nodes: %s has to leave first", counted, hosts,
			superfluous(v))}
	}
	if problem := unjoined(v, settled, voting); problem != "" {
		return []string{problem}
	}
	return nil
}

// superfluous names the Nodes of etcd that are of no Machine.
func superfluous(v *view.View) string {
	var names []string
	for _, node := range v.Workload.Etcd.Nodes {
		if len(v.Machines.Owned.Filter(func(m *clusterv1.Machine) bool { return m.Status.NodeRef.Name == node.Name })) == 0 {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return "a member whose host is gone"
	}
	return "Node " + summary(names) + ", which is of no Machine,"
}

// unjoined says that the newest host is not a member of etcd yet: of the settled Machines, or of those that vote until they leave, as those
// do that wait to be drained. A member that has started and does not vote yet is not told here: the operator brings its revision to the
// host only then, for which unfitOperators waits.
func unjoined(v *view.View, settled collections.Machines, voting int) string {
	etcd := v.Workload.Etcd
	counted, _ := EtcdMembers(etcd.MembersAvailable.Message)
	joined := voting + len(settled.Filter(func(m *clusterv1.Machine) bool {
		return m.Status.NodeRef.IsDefined() && (living(m) || undrained(v, m))
	}))
	switch {
	case counted < joined:
		return fmt.Sprintf("etcd has %d members, and %d control-plane Machines have Nodes: the host of the newest has to join it first",
			counted, joined)
	case etcd.MembersProgressing.True():
		return "A member of etcd has not started yet: " + etcd.MembersProgressing.Message
	}
	return ""
}

// AsksUpdates reports whether this pass reads the MachineConfigPool: only when a Machine is to come, to go or to be replaced, when a member
// of etcd that nobody accounts for may go, and while the cluster is upgraded or to be upgraded (DESIGN D23, D26, D27, D28).
func AsksUpdates(v *view.View) bool {
	if !v.Life.Installed() || !v.Initialized() {
		return false
	}
	machines := v.Machines.Owned.Filter(living)
	return IsUpgrading(v) || len(inHook(v)) > 0 || len(inDrainHook(v)) > 0 || StraysDue(v) ||
		len(machines) != int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)) || len(unhealthy(v)) > 0 ||
		len(machines.Filter(outdatedIn(v), func(m *clusterv1.Machine) bool { return isDue(v, m) })) > 0
}

// restarts lists the changes that restart the hosts of the control plane: one of them would be away beside the one that comes or goes.
func restarts(v *view.View) []string {
	updates, version := v.Workload.Updates, v.Workload.Version
	if v.Workload.OtherCluster != "" {
		return []string{OtherCluster(v)}
	}
	if updates == nil || version == nil {
		return []string{"The installed cluster has not said whether its hosts are about to be restarted"}
	}
	var problems []string
	if !version.Progressing.False() {
		problems = append(problems, "ClusterVersion version is progressing: "+version.Progressing.Message)
	} else if aboutToBegin(version) {
		problems = append(problems, fmt.Sprintf("ClusterVersion version asks for %s, which is about to begin", version.Requested.Version))
	}
	switch {
	case !updates.PoolUpdating.False():
		problems = append(problems, "MachineConfigPool master is updating its hosts: "+updates.PoolUpdating.Message)
	case heldBack(updates) && updates.PoolAway > 0:
		problems = append(problems, fmt.Sprintf("MachineConfigPool master is paused before all its hosts are up to date, and %d of them are "+
			"cordoned, not ready, or being changed: one that has begun restarts all the same", updates.PoolAway))
	}
	return problems
}

// heldBack reports whether hosts of the control plane are to get another configuration once somebody ends the pause of their pool. The
// machine-config operator says then that it updates none, also while one that has begun is drained and restarts.
func heldBack(updates *workload.Updates) bool { return updates.PoolPaused && updates.PoolBehind }

// aboutToBegin reports whether the cluster was asked for a newer release, and has not refused it: its version operator may begin any
// moment.
func aboutToBegin(version *workload.ClusterVersion) bool {
	order, known := compareReleases(version.Requested.Version, version.Desired.Version)
	refused := version.Observed && (version.Accepted.False() || version.Invalid.True())
	return known && order > 0 && !refused
}

// unfitUpdates lists what is wrong with the release of the cluster and the configuration of its hosts, and what changes them.
func unfitUpdates(v *view.View) []string {
	problems := restarts(v)
	if v.Workload.Updates == nil || v.Workload.Version == nil {
		return problems
	}
	if failing := v.Workload.Version.Failing; failing.True() {
		problems = append(problems, "ClusterVersion version is failing: "+failing.Message)
	}
	if degraded := v.Workload.Updates.PoolDegraded; degraded.True() {
		problems = append(problems, "MachineConfigPool master is degraded: "+degraded.Message)
	}
	return problems
}

// unfitOperators lists what is wrong with the operators of the control plane, and what they are about to do.
func unfitOperators(v *view.View) []string {
	if etcd := v.Workload.Etcd; !etcd.Stable() {
		var behind []string
		for _, node := range etcd.Nodes {
			if node.CurrentRevision != etcd.LatestRevision {
				behind = append(behind, node.Name)
			}
		}
		return []string{fmt.Sprintf("etcd is being rolled out to its hosts: %d of %d run revision %d, which is not on %s yet",
			len(etcd.Nodes)-len(behind), len(etcd.Nodes), etcd.LatestRevision, summary(behind))}
	}
	problems := unfitUpdates(v)
	for _, name := range workload.OperatorNames() {
		operator, known := v.Workload.Operators[name]
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("ClusterOperator %s has not said anything yet", name))
		case !operator.Available.True():
			problems = append(problems, fmt.Sprintf("ClusterOperator %s is not available: %s", name, operator.Available.Message))
		case operator.Degraded.True():
			problems = append(problems, fmt.Sprintf("ClusterOperator %s is degraded: %s", name, operator.Degraded.Message))
		case name == workload.OperatorAPIServer && operator.Progressing.True():
			problems = append(problems, "The API servers restart one after the other: "+operator.Progressing.Message)
		}
	}
	return problems
}
