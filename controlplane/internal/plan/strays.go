// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// strayWait is how long the operator of etcd has to report a member that does not serve before a member that nobody accounts for is
// removed: a Node may be registering, and a Machine may be on its way here with clusterctl move.
const strayWait = 10 * time.Minute

// StraysFrom is when members may be removed that neither a Machine nor a Node accounts for; zero while nothing points to any. Such a member
// is left when a Machine goes without its hook: by hand, or because it was deleted before there was one. Nobody can join while it counts.
func StraysFrom(v *view.View) time.Time {
	etcd := v.Workload.Etcd
	if !v.Life.Installed() || !v.Initialized() || etcd == nil || !etcd.MembersDegraded.True() || len(v.Machines.Foreign) > 0 {
		return time.Time{}
	}
	// The message has the number of members, and a part for each that does not serve.
	unaccounted := strings.Count(etcd.MembersAvailable.Message, ", ")
	for _, m := range append(v.Machines.Owned.UnsortedList(), v.Machines.Orphans...) {
		if MemberProblem(etcd.MembersAvailable.Message, m) != "" {
			unaccounted--
		}
	}
	if unaccounted <= view.Arbiters(v.ControlPlane.Spec.Install) {
		return time.Time{}
	}
	return etcd.MembersDegraded.Since.Add(strayWait)
}

// StraysDue reports whether members that nobody accounts for may be removed in this pass.
func StraysDue(v *view.View) bool {
	from := StraysFrom(v)
	return !from.IsZero() && !from.After(v.Now)
}

// stray is the member that nobody accounts for and that etcd can do without; nil when there is none.
func stray(v *view.View, etcd Etcd) *workload.Member {
	if !StraysDue(v) {
		return nil
	}
	hosts := make([]EtcdHost, 0, len(v.Machines.Owned)+len(v.Machines.Orphans)+len(v.Workload.Nodes))
	for _, m := range append(v.Machines.Owned.SortedByCreationTimestamp(), v.Machines.Orphans...) {
		hosts = append(hosts, etcdHostOf(v, m))
	}
	for _, node := range v.Workload.Nodes {
		hosts = append(hosts, EtcdHost{Node: node.Name, Addresses: node.Addresses})
	}
	for _, member := range etcd.Strays(hosts) {
		if etcd.MayLose(member) == "" {
			return &member
		}
	}
	return nil
}

// MemberProblem is what the operator of etcd says against the member of a Machine, after the number of members that are available: that of
// a host by its name, or by its address while it has never started.
func MemberProblem(message string, m *clusterv1.Machine) string {
	names := make([]string, 0, 1+2*len(m.Status.Addresses))
	names = append(names, m.Status.NodeRef.Name)
	for _, address := range m.Status.Addresses {
		names = append(names, "NAME-PENDING-"+address.Address, "NAME-PENDING-["+address.Address+"]")
	}
	for _, part := range strings.Split(message, ", ") {
		name, _, _ := strings.Cut(part, " ")
		if slices.Contains(names, name) {
			return part
		}
	}
	return ""
}
