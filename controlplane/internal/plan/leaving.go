// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// AsksMembers reports whether the pass has to ask etcd itself for its members: only when one is about to go. In a steady state nobody is
// asked (DESIGN D25).
func AsksMembers(v *view.View) bool {
	return v.Life.Installed() && v.Initialized() && len(inHook(v)) > 0 || StraysDue(v) || RemediationAsksMembers(v)
}

// AsksNodes reports whether the pass reads the Nodes of the control plane, because a Machine waits to be drained until the hosts have
// restarted.
func AsksNodes(v *view.View) bool {
	return v.Life.Installed() && v.Initialized() && len(inDrainHook(v)) > 0 && len(restarts(v)) > 0
}

// inHook are the Machines that nothing but the hook of etcd keeps, the oldest first.
func inHook(v *view.View) []*clusterv1.Machine {
	return v.Machines.Owned.Filter(view.InEtcdHook).SortedByCreationTimestamp()
}

// inDrainHook are the Machines whose Nodes nothing but the pre-drain hook of etcd keeps from being drained, the oldest first.
func inDrainHook(v *view.View) []*clusterv1.Machine {
	return v.Machines.Owned.Filter(view.InEtcdDrainHook).SortedByCreationTimestamp()
}

// LeavingOf decides which Machines are drained and leave etcd, and which of their hooks go.
func LeavingOf(v *view.View) LeavingDecision {
	if v.Life == view.Deleting && !deletesMachines(v) {
		return LeavingDecision{} // The cluster may live on (kubectl delete --cascade=orphan).
	}
	d := leavingMembers(v)
	for _, m := range inDrainHook(v) {
		why := undrainable(v, m)
		switch {
		case why == "":
			d.Drain = append(d.Drain, m)
		case d.Waiting == nil:
			d.Waiting = map[string]string{m.Name: why}
		default:
			d.Waiting[m.Name] = why
		}
	}
	return d
}

// undrainable says why the Node of a Machine that is being deleted is not cordoned yet; it is empty when it may be. A host that does not
// run keeps the next one from being restarted anyway; one that is restarting itself is given the time for it. While nobody has heard from
// the Nodes, those that run are not told from those that do not. While the pool is paused and every other host is back, none is restarted;
// a host that is still to join comes first then, because etcd must not be without two members.
func undrainable(v *view.View, m *clusterv1.Machine) string {
	if !v.Life.Installed() || !m.Status.NodeRef.IsDefined() {
		return ""
	}
	if why, _ := unheard(v); why == "" && down(v, m) {
		return ""
	}
	if etcd := etcdOf(v); etcd.Paused && etcd.awayBeside(m.Status.NodeRef.Name) == 0 && !lacksHost(v) {
		return ""
	}
	why := untilRestarted(restarts(v))
	if node := v.Workload.NodeOf(m); why != "" && node != nil && node.Cordoned {
		why += fmt.Sprintf(". Node %s is cordoned already, which may keep them from it: uncordon it, or set spec.paused of MachineConfigPool "+
			"master to true until the Machine is gone", node.Name)
	}
	return why
}

// lacksHost reports whether fewer hosts have joined than etcd needs before one leaves: three, or spec.replicas when that is less. Those
// that wait to be drained have joined.
func lacksHost(v *view.View) bool {
	joined := v.Machines.Owned.Filter(func(m *clusterv1.Machine) bool {
		return m.Status.NodeRef.IsDefined() && (living(m) || view.InEtcdDrainHook(m))
	})
	return len(joined) < min(minVoters, int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)))
}

// undrained reports whether a Machine that is being deleted waits for the end of an update before its Node is drained. That may be held up
// by a host that is to be replaced, or whose replacement is missing: nobody waits for such a Machine.
func undrained(v *view.View, m *clusterv1.Machine) bool {
	return view.InEtcdDrainHook(m) && undrainable(v, m) != ""
}

// standsAside reports whether a Machine that is being deleted is not waited for by whoever gives another one up. It may wait for that
// itself, before it is drained or before it leaves etcd; and while the host of the other one does not run, the PodDisruptionBudget of etcd
// may keep the drain from its end. Its member votes meanwhile, and leaves after that of the other one in any case.
func standsAside(v *view.View, m, other *clusterv1.Machine) bool {
	isAway := other.Status.NodeRef.IsDefined() && !nodeReady(other)
	return view.InEtcdHook(m) || undrained(v, m) || isAway && view.KeepsHost(m)
}

// beingDeleted says that a Machine is being deleted, and what to do when that never ends: without a time-out its Node is drained for as
// long as a Pod may not go.
func beingDeleted(m *clusterv1.Machine) string {
	text := fmt.Sprintf("Machine %s is being deleted", m.Name)
	if !view.IsDrained(m) || ptr.Deref(m.Spec.Deletion.NodeDrainTimeoutSeconds, 0) > 0 {
		return text
	}
	return fmt.Sprintf("%s, and its Node is drained without a time limit. If that does not end, which its condition Deleting explains, set "+
		"spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds, or annotation %s on the Machine", text,
		clusterv1.ExcludeNodeDrainingAnnotation)
}

// down reports whether the Node of a Machine has not been ready for longer than a host takes to restart.
func down(v *view.View, m *clusterv1.Machine) bool {
	since := conditions.GetLastTransitionTime(m, clusterv1.MachineNodeReadyCondition)
	return !nodeReady(m) && since != nil && v.Now.Sub(since.Time) >= hostRestartWait
}

// leavingMembers decides about the Machines whose Nodes are drained. A member leaves before its host does, and nobody removes one on a
// guess: when etcd cannot be asked, the hooks stay.
func leavingMembers(v *view.View) LeavingDecision {
	if !AsksMembers(v) && len(inHook(v)) == 0 {
		return LeavingDecision{}
	}
	leaving, others, inFlight := etcdHosts(v)
	switch {
	case len(Unrecorded(v)) > 0:
		return allWait(leaving, "Nothing tells of which cluster the Machines of the control plane are Nodes")
	case !v.Life.Installed():
		return LeavingDecision{Release: leaving, AtOnce: true} // Its host never was a member of a cluster that anybody uses (CONTRACT KCP-24).
	}
	if why := unchangeable(v); why != "" {
		return allWait(leaving, why)
	}
	etcd := etcdOf(v)
	d := DecideLeaving(etcd, leaving, others, inFlight)
	if d.Remove == nil && len(inFlight) == 0 {
		d.Stray = stray(v, etcd)
	}
	return d
}

// allWait lets no host go, for one reason.
func allWait(leaving []Leaving, why string) LeavingDecision {
	d := LeavingDecision{Waiting: map[string]string{}}
	for _, l := range leaving {
		d.Waiting[l.Machine] = why
	}
	return d
}

// etcdOf is what is known of the members of etcd.
func etcdOf(v *view.View) Etcd {
	etcd := Etcd{Members: v.Workload.Members, Stable: v.Workload.Etcd.Stable(), Restarts: restarts(v)}
	if updates := v.Workload.Updates; updates != nil {
		// Of a cluster that has not said to which release it goes nobody knows what a paused pool keeps from happening.
		etcd.Paused, etcd.Away = updates.PoolPaused && v.Workload.Version != nil, updates.PoolAway
	}
	for _, node := range v.Workload.Nodes {
		if node.Cordoned || !node.Ready {
			etcd.AwayNodes = append(etcd.AwayNodes, node.Name)
		}
	}
	for _, m := range v.Machines.Owned.Filter(view.KeepsHost) {
		if node := v.Workload.NodeOf(m); node != nil && node.Cordoned && node.Ready && !node.Changing {
			etcd.Drained = append(etcd.Drained, node.Name)
		}
	}
	if report := v.Workload.Etcd; report != nil && report.MembersDegraded.True() {
		etcd.Unwell = v.Now.Sub(report.MembersDegraded.Since)
	}
	return etcd
}

// deletesMachines reports whether the deletion of the control plane has come to its Machines.
func deletesMachines(v *view.View) bool {
	step, _, _ := LeftoversOf(v).Next()
	return step != DeletionWaitForWorkers && step != DeletionWaitForOrphaning
}

// AvoidedNode is the Node whose etcd is not asked, because its host may be off or about to go: that of the oldest Machine that leaves.
func AvoidedNode(v *view.View) string {
	for _, m := range inHook(v) {
		if node := v.Workload.NodeOf(m); node != nil {
			return node.Name
		}
	}
	return ""
}

// unchangeable says why nobody removes a member of this cluster's etcd, or not now; it is empty when its members are known and may go.
func unchangeable(v *view.View) string {
	switch {
	case v.Life == view.Mismatch:
		return "Another cluster answers than the one that was installed"
	case v.Workload.OtherCluster != "":
		return OtherCluster(v)
	case v.ControlPlane.Spec.Install.TwoNode != "":
		return fmt.Sprintf("The members of a two-node cluster (spec.install.twoNode: %s) are not removed: remove the member by hand, and then "+
			"annotation %s from the Machine", v.ControlPlane.Spec.Install.TwoNode, controlplanev1.EtcdHookAnnotation)
	case v.Workload.MachineAPI:
		return fmt.Sprintf("The cluster has a Machine API that works, whose own Machines its operator of etcd goes by: remove the host there, "+
			"and then annotation %s from the Machine", controlplanev1.EtcdHookAnnotation)
	case v.Workload.MachineAPIProblem != nil:
		return unknownMachineAPI(v.Workload.MachineAPIProblem)
	case v.Workload.MembersProblem != nil:
		return "etcd cannot be asked for its members: " + v.Workload.MembersProblem.Error()
	case v.Workload.Members == nil:
		return "The installed cluster does not answer"
	}
	return ""
}

// etcdHosts sorts the control-plane Machines: those that wait in the hook of etcd, those that stay or are not so far, and the names of
// those whose hook is gone and that still exist.
func etcdHosts(v *view.View) (leaving []Leaving, others []EtcdHost, inFlight []string) {
	for _, m := range v.Machines.Owned.SortedByCreationTimestamp() {
		host := etcdHostOf(v, m)
		switch {
		case view.InEtcdHook(m):
			leaving = append(leaving, Leaving{EtcdHost: host, Deleted: m.DeletionTimestamp.Time})
			continue
		case !m.DeletionTimestamp.IsZero() && !view.HasEtcdHook(m):
			inFlight = append(inFlight, m.Name)
		}
		others = append(others, host)
	}
	return leaving, others, inFlight
}

// etcdHostOf is a Machine with the name and the addresses under which etcd may know its host.
func etcdHostOf(v *view.View, m *clusterv1.Machine) EtcdHost {
	host := EtcdHost{Machine: m.Name, Node: m.Status.NodeRef.Name}
	for _, address := range m.Status.Addresses {
		if address.Type == clusterv1.MachineInternalIP || address.Type == clusterv1.MachineExternalIP {
			host.Addresses = append(host.Addresses, address.Address)
		}
	}
	if node := v.Workload.NodeOf(m); node != nil {
		host.Node, host.Ready = node.Name, node.Ready
		host.Addresses = append(host.Addresses, node.Addresses...)
	}
	host.Gone = host.Node != "" && !slices.ContainsFunc(v.Workload.Nodes, func(node workload.ControlPlaneNode) bool {
		return node.Name == host.Node
	})
	return host
}
