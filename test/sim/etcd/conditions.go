// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Values of Condition.Status.
const (
	True  = "True"
	False = "False"
)

// Condition is a condition of the Etcd resource or of ClusterOperator etcd.
type Condition struct {
	Type, Status, Reason, Message string
	// Since is the last transition; the zero time is the installation.
	Since time.Time
}

// Operator is what cluster-etcd-operator reports.
type Operator struct {
	// LatestAvailableRevision, NodeStatuses and Conditions are the status of Etcd cluster.
	LatestAvailableRevision int32
	NodeStatuses            []NodeStatus
	Conditions              []Condition
	// ClusterOperator are the conditions of ClusterOperator etcd.
	ClusterOperator []Condition
}

// Operator is what the operator reported when it last could.
func (c *Cluster) Operator() Operator {
	return Operator{
		LatestAvailableRevision: c.latest, NodeStatuses: slices.Clone(c.nodes), Conditions: slices.Clone(c.conditions),
		ClusterOperator: []Condition{
			c.union("Available", True), c.union("Degraded", False), c.union("Progressing", False),
			{Type: "Upgradeable", Status: True, Reason: "AsExpected", Message: "All is well"},
		},
	}
}

// Condition returns the condition of a type, the zero value when there is none.
func (o Operator) Condition(kind string) Condition { return condition(o.Conditions, kind) }

func condition(conditions []Condition, kind string) Condition {
	index := slices.IndexFunc(conditions, func(condition Condition) bool { return condition.Type == kind })
	if index < 0 {
		return Condition{}
	}
	return conditions[index]
}

// report writes the conditions.
func (c *Cluster) report() {
	c.reportMembers()
	c.reportNodes()
	c.reportRevisions()
	c.set("RevisionControllerDegraded", c.unsafe != "", "AsExpected", "", "SyncError", c.unsafe)
	guard := c.missingOperands()
	c.set("GuardControllerDegraded", guard != "", "AsExpected", "", "SyncError", guard)
	c.set("ClusterMemberControllerDegraded", false, "AsExpected", "", "", "")
	c.set("EtcdEndpointsDegraded", false, "EtcdEndpointsUpdated", "", "", "")
	c.set("NodeInstallerDegraded", false, "", "", "", "")
}

// set writes a condition whose first reason and message are those of False, the second those of True.
func (c *Cluster) set(kind string, status bool, reason, message, trueReason, trueMessage string) {
	now := Condition{Type: kind, Status: False, Reason: reason, Message: message, Since: c.now}
	if status {
		now.Status, now.Reason, now.Message = True, trueReason, trueMessage
	}
	if before := condition(c.conditions, kind); before.Status == now.Status {
		now.Since = before.Since
	}
	c.conditions = slices.DeleteFunc(c.conditions, func(condition Condition) bool { return condition.Type == kind })
	c.conditions = append(c.conditions, now)
	slices.SortFunc(c.conditions, func(a, b Condition) int { return cmp.Compare(a.Type, b.Type) })
}

func (c *Cluster) reportMembers() {
	text := c.memberText()
	healthy := len(c.members) - len(c.unhealthy())
	unstarted := c.find(func(m *member) bool { return !m.started() }) != nil
	c.set("EtcdMembersAvailable", healthy > len(c.members)/2, "No quorum", text, "EtcdQuorate", text)
	c.set("EtcdMembersDegraded", healthy < len(c.members), "AsExpected", "No unhealthy members found", "UnhealthyMembers", text)
	c.set("EtcdMembersProgressing", unstarted, "AsExpected", "No unstarted etcd members found", "MembersNotStarted", text)
}

// memberText says how many members are healthy, and which are not.
func (c *Cluster) memberText() string {
	unhealthy := c.unhealthy()
	if len(unhealthy) == 0 {
		return fmt.Sprintf("%d members are available", len(c.members))
	}
	out := []string{fmt.Sprintf("%d of %d members are available", len(c.members)-len(unhealthy), len(c.members))}
	for _, m := range unhealthy {
		if m.started() {
			out = append(out, m.name+" is unhealthy")
		} else {
			out = append(out, "NAME-PENDING-"+bracketed(m.address)+" has not started")
		}
	}
	return strings.Join(out, ", ")
}

func bracketed(address string) string {
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		return "[" + address + "]"
	}
	return address
}

func (c *Cluster) reportNodes() {
	var silent []string
	for _, name := range c.nodeNames() {
		host, machine := c.hosts[name], c.machines[name]
		if host.Ready {
			machine.silent = time.Time{}
			continue
		}
		if machine.silent.IsZero() {
			machine.silent = c.now
		}
		why := "NodeStatusUnknown (Kubelet stopped posting node status.)"
		if host.Running {
			why = "KubeletNotReady (container runtime network not ready)"
		}
		silent = append(silent, fmt.Sprintf("node %q not ready since %s because %s", name, machine.silent.Round(0).UTC(), why))
	}
	c.set("NodeControllerDegraded", len(silent) > 0, "MasterNodesReady", "All master nodes are ready",
		"MasterNodesReady", "The master nodes not ready: "+strings.Join(silent, ", "))
}

func (c *Cluster) reportRevisions() {
	counts, active := map[int32]int{}, 0
	for _, node := range c.nodes {
		counts[node.Current]++
		if node.Current != 0 {
			active++
		}
	}
	text := c.revisionText(counts)
	c.set("NodeInstallerProgressing", !c.stable(), "AllNodesAtLatestRevision", text, "", text)
	text = fmt.Sprintf("%d nodes are active; %s", active, text)
	c.set("StaticPodsAvailable", active > 0, "ZeroNodesActive", text, "", text)
}

func (c *Cluster) revisionText(counts map[int32]int) string {
	var out []string
	for _, number := range slices.Sorted(maps.Keys(counts)) {
		if counts[number] == 1 {
			out = append(out, fmt.Sprintf("1 node is at revision %d", number))
		} else {
			out = append(out, fmt.Sprintf("%d nodes are at revision %d", counts[number], number))
		}
	}
	if !c.stable() && counts[c.latest] == 0 {
		out = append(out, fmt.Sprintf("0 nodes have achieved new revision %d", c.latest))
	}
	return strings.Join(out, "; ")
}

// missingOperands names the ready Nodes that have no etcd pod and so can have no guard.
func (c *Cluster) missingOperands() string {
	var out []string
	for _, name := range c.nodeNames() {
		if host := c.hosts[name]; host.Ready && !host.Cordoned && c.machines[name].pod == nil {
			out = append(out, "Missing operand on node "+name)
		}
	}
	if len(out) > 1 {
		return "[" + strings.Join(out, ", ") + "]"
	}
	return strings.Join(out, "")
}

// union is a condition of the ClusterOperator: the sum of all conditions whose type ends with its own. Its status is normal
// unless one of them has the other status, and for Degraded has it for longer than the inertia.
func (c *Cluster) union(kind, normal string) Condition {
	var bad []Condition
	all := slices.DeleteFunc(slices.Clone(c.conditions), func(condition Condition) bool { return !strings.HasSuffix(condition.Type, kind) })
	lasting := false
	for _, condition := range all {
		if condition.Status != normal {
			bad = append(bad, condition)
			lasting = lasting || kind != "Degraded" || c.now.Sub(condition.Since) >= c.options.DegradedInertia
		}
	}
	if !lasting {
		return Condition{Type: kind, Status: normal, Reason: "AsExpected", Message: unionMessage(all), Since: lastChange(all)}
	}
	status := True
	if normal == True {
		status = False
	}
	return Condition{Type: kind, Status: status, Reason: unionReason(kind, bad), Message: unionMessage(bad), Since: lastChange(bad)}
}

func unionMessage(conditions []Condition) string {
	var out []string
	for _, condition := range conditions {
		if condition.Message != "" {
			out = append(out, condition.Type+": "+condition.Message)
		}
	}
	return cmp.Or(strings.Join(out, "\n"), "All is well")
}

func unionReason(kind string, conditions []Condition) string {
	var out []string
	for _, condition := range conditions {
		name := strings.TrimSuffix(condition.Type, kind)
		if condition.Reason != "" {
			name += "_" + condition.Reason
		}
		out = append(out, name)
	}
	return strings.Join(out, "::")
}

func lastChange(conditions []Condition) time.Time {
	var out time.Time
	for _, condition := range conditions {
		if condition.Since.After(out) {
			out = condition.Since
		}
	}
	return out
}
