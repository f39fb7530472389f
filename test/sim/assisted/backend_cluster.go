// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// cluster is the backend's row of a cluster. Its identifier is new for every AgentClusterInstall that is created.
type cluster struct {
	id    string
	cd    types.NamespacedName
	aci   types.NamespacedName
	state string
	info  string
	since time.Time

	spec      clusterInput
	openshift string
	failing   []string
	// prepared is set by the first attempt to prepare the installation.
	prepared bool
	// unprepared is why ignition or manifests could not be made in the last attempt.
	unprepared string
	progress   int64
	// quorumSince is when as many hosts had reported as the control plane needs: from then on they can reach each other.
	quorumSince time.Time
	// installingSince is when the state became installing, zero before.
	installingSince time.Time
	finalizingSince time.Time
	// reachable is set when there is a Secret with a kubeconfig by which the service can look at an installed cluster.
	reachable bool
}

// clusterInput is what the custom resources ask for.
type clusterInput struct {
	ControlPlaneAgents int
	ArbiterAgents      int
	WorkerAgents       int
	Held               bool
	Imported           bool
	Name               string
	BaseDomain         string
	APIVIPs            []string
	IngressVIPs        []string
	ReleaseImage       string
	// Network is set when there is enough of it to ask the user for the rest: what makes an empty cluster flap.
	Network bool
}

func (b *backend) setCluster(c *cluster, state string) {
	b.setClusterInfo(c, state, clusterInfos[state])
}

func (b *backend) setClusterInfo(c *cluster, state, info string) {
	if c.state == state && c.info == info {
		return
	}
	if c.state != state {
		c.since = b.now()
	}
	c.state, c.info = state, info
	b.touchCluster(c)
}

// syncCluster registers the cluster of an AgentClusterInstall or updates it, and starts the installation when nothing
// is missing any more.
func (b *backend) syncCluster(cd, aci types.NamespacedName, in clusterInput) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clusters[b.byCD[cd]]
	if c == nil {
		c = &cluster{id: b.uuid(), cd: cd, aci: aci, openshift: b.uuid(), since: b.now()}
		b.clusters[c.id] = c
		b.byCD[cd] = c.id
		b.metal.known[cd]++
		b.setCluster(c, clusterInsufficient)
	}
	if in.Imported || beforeInstall(c.state) {
		c.spec = in // Once the installation has begun, nothing of it is used any more; the webhook refuses most changes.
	}
	if in.Imported && beforeInstall(c.state) {
		b.setCluster(c, clusterAddingHosts)
	}
	b.startInstall(c)
}

// setReachable notes whether the service has a kubeconfig of an installed cluster.
func (b *backend) setReachable(cd types.NamespacedName, reachable bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.clusters[b.byCD[cd]]; c != nil {
		c.reachable = reachable
	}
}

// monitorCluster is one pass of the cluster monitor.
func (b *backend) monitorCluster(c *cluster, now time.Time) {
	switch c.state {
	case clusterInsufficient, clusterPendingInput, clusterReady:
		b.refreshCluster(c)
		b.startInstall(c)
	case clusterPreparing:
		b.monitorPreparing(c)
	case clusterInstalling:
		b.monitorInstalling(c)
	case clusterFinalizing:
		b.monitorFinalizing(c, now)
	case clusterError:
		b.failRest(c)
	}
}

func (b *backend) refreshCluster(c *cluster) {
	b.refreshQuorum(c)
	failing := b.validateCluster(c)
	if !slices.Equal(failing, c.failing) {
		c.failing = failing
		b.touchCluster(c)
	}
	empty := c.reported(b) == 0
	switch {
	case len(failing) == 0 && !empty:
		b.setCluster(c, clusterReady)
	case empty && c.spec.Network && !b.opts.CalmState && (c.state == clusterInsufficient || c.state == clusterPendingInput):
		b.flap(c)
	default:
		b.setCluster(c, clusterInsufficient)
	}
}

// flap lets two states alternate until a host has reported its hardware (ASSISTED fact 5).
func (b *backend) flap(c *cluster) {
	switch {
	case b.now().Sub(c.since) < b.opts.Durations.Flap:
	case c.state == clusterInsufficient:
		b.setCluster(c, clusterPendingInput)
	default:
		b.setCluster(c, clusterInsufficient)
	}
}

// refreshQuorum notes when enough hosts have reported to check their connectivity.
func (b *backend) refreshQuorum(c *cluster) {
	enough := c.reported(b) >= c.spec.ControlPlaneAgents
	switch {
	case !enough:
		c.quorumSince = time.Time{}
	case c.quorumSince.IsZero():
		c.quorumSince = b.now()
	}
}

// validateCluster returns the messages of the cluster's failing checks.
func (b *backend) validateCluster(c *cluster) []string {
	failing := b.faults.clusterValidations(c.aci)
	members := c.members(b)
	if len(members) == 0 {
		return append(failing, "The cluster must have exactly "+controlPlaneSentence(c))
	}
	masters, unfenced := 0, 0
	notReady := false
	for _, h := range members {
		if h.effectiveRole() == roleMaster {
			masters++
			unfenced += btoi(!h.fenced)
		}
		notReady = notReady || h.state != hostKnown
	}
	if notReady {
		failing = append(failing, "The cluster has hosts that are not ready to install.")
	}
	if masters != c.spec.ControlPlaneAgents {
		failing = append(failing, "The cluster must have exactly "+controlPlaneSentence(c))
	}
	if c.spec.fencing() && unfenced > 0 {
		failing = append(failing, "Clusters with 2 control plane nodes need an arbiter, or fencing credentials of every control plane node")
	}
	return failing
}

// fencing says whether two control-plane hosts have no arbiter, by which the service tells that they fence each other.
func (in clusterInput) fencing() bool { return in.ControlPlaneAgents == 2 && in.ArbiterAgents == 0 }

func controlPlaneSentence(c *cluster) string {
	return fmt.Sprintf("%d dedicated control plane nodes. Add or remove hosts, or change their roles configurations to meet the requirement.",
		c.spec.ControlPlaneAgents)
}

// members are the cluster's hosts in the order in which they registered.
func (c *cluster) members(b *backend) []*host {
	var out []*host
	for _, h := range b.hosts {
		if h.clusterID == c.id && h.clusterID != "" {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *host) int {
		if a.order != b.order {
			return a.order - b.order
		}
		return strings.Compare(a.id, b.id)
	})
	return out
}

// founders are the members that take part in the first installation.
func (c *cluster) founders(b *backend) []*host {
	return slices.DeleteFunc(c.members(b), func(h *host) bool { return h.kind != kindHost })
}

// reported counts the members whose hardware is known.
func (c *cluster) reported(b *backend) int {
	n := 0
	for _, h := range c.members(b) {
		if h.inventory != nil {
			n++
		}
	}
	return n
}

// hostnameTaken says whether another member has the host's name.
func (c *cluster) hostnameTaken(b *backend, h *host) bool {
	name := h.nodeName()
	return name != "" && slices.ContainsFunc(c.members(b), func(other *host) bool {
		return other != h && other.nodeName() == name
	})
}

// roleFor is the role that the service would give a host that may have any: masters first.
func (c *cluster) roleFor(b *backend, h *host) string {
	masters := 0
	for _, other := range c.founders(b) {
		if other != h && (other.role == roleMaster || other.role != roleWorker && other.suggestedRole == roleMaster) {
			masters++
		}
	}
	if masters < c.spec.ControlPlaneAgents {
		return roleMaster
	}
	return roleWorker
}

// tally is what the trigger rule counts (ASSISTED 1.3).
type tally struct {
	masters, arbiters, workers, approved, unsynced int
	mastersReady, arbitersReady, workersReady      int
}

func (c *cluster) tally(b *backend) tally {
	var t tally
	for _, h := range c.members(b) {
		t.count(h)
	}
	return t
}

func (t *tally) count(h *host) {
	ready := h.state == hostKnown
	switch h.effectiveRole() {
	case roleMaster:
		t.masters++
		t.mastersReady += btoi(ready)
	case roleArbiter:
		t.arbiters++
		t.arbitersReady += btoi(ready)
	default:
		t.workers++
		t.workersReady += btoi(ready)
	}
	// Only a ready host's approval counts: after a failed preparation the service asks for all of them again.
	t.approved += btoi(h.approved && ready)
	t.unsynced += btoi(!h.specSynced)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// startInstall begins the installation when the cluster is ready, not held, and the counts are exactly right.
func (b *backend) startInstall(c *cluster) {
	if c.state != clusterReady || c.spec.Held {
		return
	}
	t := c.tally(b)
	want := c.spec
	exact := t.mastersReady == want.ControlPlaneAgents && t.arbitersReady == want.ArbiterAgents && t.workersReady == want.WorkerAgents &&
		t.masters+t.arbiters+t.workers == want.agents()
	if !exact || t.approved != want.agents() || t.unsynced > 0 {
		return
	}
	c.prepared, c.unprepared = true, ""
	b.setCluster(c, clusterPreparing)
	for _, h := range slices.Backward(c.members(b)) {
		if h.effectiveRole() == roleMaster {
			h.bootstrap = true
			b.touchHost(h)
			break
		}
	}
}

// agents is the number of hosts of the first installation.
func (in clusterInput) agents() int {
	return in.ControlPlaneAgents + in.ArbiterAgents + in.WorkerAgents
}

// removeCluster cancels a running installation and forgets the cluster. Its hosts become free as described in ASSISTED
// 8.5.
func (b *backend) removeCluster(cd types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clusters[b.byCD[cd]]
	if c == nil {
		return
	}
	for _, h := range c.members(b) {
		if isOneOf(h.state, installingStates) {
			b.leaveCluster(h, c)
			b.setHost(h, hostCancelled)
			continue
		}
		b.leaveCluster(h, c)
	}
	delete(b.byCD, cd)
	delete(b.clusters, c.id)
	b.metal.known[cd]--
	if c.state != clusterAddingHosts {
		b.endCluster(cd) // What there is of it comes to nothing: its hosts are installed anew.
	}
	b.endIfGone(cd)
}
