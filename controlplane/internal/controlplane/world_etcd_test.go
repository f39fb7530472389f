// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// worldEtcd is the etcd of the installed cluster, and the Nodes of its hosts. Before the cluster is installed it says nothing.
type worldEtcd struct {
	model *etcd.Cluster
	// hosts are those that were ever installed, by name, which is that of the Machine and of the Node.
	hosts map[string]*etcd.Host
	// around makes each call that asks for more than its cache has; nil just calls.
	around func(name string, call func() error) error
	// refused is why no program can be run in a container; nil when programs can.
	refused error
	// unreachable: nothing is heard of the installed cluster. afterDeletion is why the members cannot be listed once a Node was deleted.
	unreachable   bool
	afterDeletion error
	// machineAPI is why nobody says whether there is a Machine API that works.
	machineAPI error
	// asked counts the programs that were run, removed has the names of the members that were removed, and uids those of the Nodes.
	asked   int
	removed []string
	uids    int
	nodes   map[string]types.UID
	// cordoned are the names of Nodes on which nothing is placed.
	cordoned map[string]bool
}

var (
	_ workload.Etcd              = &worldEtcd{}
	_ workload.ControlPlaneNodes = &worldEtcd{}
)

func newWorldEtcd() *worldEtcd {
	return &worldEtcd{hosts: map[string]*etcd.Host{}, nodes: map[string]types.UID{}}
}

func (e *worldEtcd) call(name string, call func() error) error {
	if e.around == nil {
		return call()
	}
	return e.around(name, call)
}

// list are the hosts, by name.
func (e *worldEtcd) list() []etcd.Host {
	var hosts []etcd.Host
	for _, host := range e.hosts {
		hosts = append(hosts, *host)
	}
	slices.SortFunc(hosts, func(a, b etcd.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

// join makes the host of a Machine a Node.
func (e *worldEtcd) join(machine string) {
	if host := e.hosts[machine]; host != nil {
		return // A kubelet registers once.
	}
	e.uids++
	e.hosts[machine] = &etcd.Host{
		Name: machine, Address: fmt.Sprintf("10.0.0.%d", e.uids), Disk: machine, Node: true, Running: true, Ready: true,
	}
	e.nodes[machine] = types.UID(fmt.Sprintf("node-%d", e.uids))
}

// EtcdOperator is what the operator of the model reports.
func (e *worldEtcd) EtcdOperator(context.Context, client.ObjectKey, workload.Subscriber) (*workload.EtcdReport, error) {
	if e.model == nil || e.unreachable {
		return nil, nil
	}
	said := e.model.Operator()
	condition := func(kind string) workload.OperatorCondition {
		c := said.Condition(kind)
		return workload.OperatorCondition{Status: configv1.ConditionStatus(c.Status), Message: c.Message, Since: c.Since}
	}
	report := &workload.EtcdReport{
		MembersAvailable: condition("EtcdMembersAvailable"), MembersDegraded: condition("EtcdMembersDegraded"),
		MembersProgressing: condition("EtcdMembersProgressing"), RevisionControllerDegraded: condition("RevisionControllerDegraded"),
		LatestRevision: said.LatestAvailableRevision,
	}
	for _, node := range said.NodeStatuses {
		report.Nodes = append(report.Nodes, workload.EtcdNode{
			Name: node.Name, CurrentRevision: node.Current, TargetRevision: node.Target,
		})
	}
	return report, nil
}

// Members are those of the model.
func (e *worldEtcd) Members(context.Context, client.ObjectKey, string) (members []workload.Member, err error) {
	err = e.call("list the members", func() error {
		members, err = e.members()
		return err
	})
	return members, err
}

func (e *worldEtcd) members() ([]workload.Member, error) {
	e.asked++
	if e.refused != nil {
		return nil, e.refused
	}
	if e.unreachable {
		return nil, errors.New("there is no connection")
	}
	if e.model == nil || !e.model.Quorum() {
		return nil, errors.New("context deadline exceeded")
	}
	var members []workload.Member
	for _, m := range e.model.Members() {
		address := strings.TrimSuffix(strings.TrimPrefix(m.PeerURL, "https://"), ":2380")
		members = append(members, workload.Member{
			ID: m.ID, Name: m.Name, PeerHosts: []string{strings.Trim(address, "[]")}, Learner: m.Learner, Healthy: m.Healthy, Leader: m.Leader,
		})
	}
	return members, nil
}

// run runs etcdctl on a host other than avoid.
func (e *worldEtcd) run(avoid string, args ...string) error {
	e.asked++
	for _, host := range e.list() {
		if !host.Running || host.Name == avoid {
			continue
		}
		switch result := e.model.Etcdctl(host.Name, args); {
		case result.Ending != etcd.Ended:
			return errors.New("the connection ends without a word")
		case result.ExitCode != 0:
			return errors.New(result.Stderr)
		}
		return nil
	}
	return errors.New("no host of etcd runs")
}

// RemoveMember removes a member from the model.
func (e *worldEtcd) RemoveMember(_ context.Context, _ client.ObjectKey, avoid string, id uint64) error {
	return e.call("remove a member", func() error {
		members := e.model.Members()
		if err := e.run(avoid, "member", "remove", strconv.FormatUint(id, 16), "--write-out=json"); err != nil {
			return err
		}
		for _, m := range members {
			if m.ID == id {
				e.removed = append(e.removed, m.Name)
			}
		}
		return nil
	})
}

// MoveLeader makes a member of the model the leader.
func (e *worldEtcd) MoveLeader(_ context.Context, _ client.ObjectKey, avoid string, to uint64) error {
	return e.call("move the leader", func() error { return e.run(avoid, "move-leader", strconv.FormatUint(to, 16), "--write-out=json") })
}

// ControlPlaneNodes are the Nodes that the hosts have.
func (e *worldEtcd) ControlPlaneNodes(context.Context, client.ObjectKey) ([]workload.ControlPlaneNode, error) {
	if e.unreachable {
		return nil, errors.New("there is no connection")
	}
	var nodes []workload.ControlPlaneNode
	for _, host := range e.list() {
		if host.Node {
			nodes = append(nodes, workload.ControlPlaneNode{
				Name: host.Name, UID: e.nodes[host.Name], Addresses: []string{host.Address}, Ready: host.Ready,
				Cordoned: e.cordoned[host.Name],
			})
		}
	}
	return nodes, nil
}

// DeleteNode takes the Node from a host.
func (e *worldEtcd) DeleteNode(_ context.Context, _ client.ObjectKey, name string, uid types.UID) (deleted bool, err error) {
	err = e.call("delete Node "+name, func() error {
		host := e.hosts[name]
		if host == nil || !host.Node || e.nodes[name] != uid {
			return nil
		}
		host.Node, host.Ready, deleted = false, false, true
		if e.afterDeletion != nil {
			e.refused = e.afterDeletion
		}
		return nil
	})
	return deleted, err
}

// MachineAPI says that there is none.
func (e *worldEtcd) MachineAPI(context.Context, client.ObjectKey) (bool, error) {
	return false, e.machineAPI
}

// etcd lets the hosts of control-plane Machines that have Nodes run etcd, and those whose Machines are gone stop.
func (w *world) etcd() {
	if w.api.ID == "" {
		return
	}
	exists := map[string]bool{}
	for _, m := range w.machines() {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok && m.Status.NodeRef.IsDefined() {
			w.installed.join(m.Name)
			exists[m.Name] = true
		}
	}
	for name, host := range w.installed.hosts {
		if !exists[name] {
			host.Running, host.Ready = false, false
		}
	}
	if w.installed.model == nil {
		w.installed.model = etcd.New(1, etcd.Options{})
		w.installed.model.Bootstrap(w.installed.list())
	}
	w.installed.model.Tick(w.now, w.installed.list())
}

// waitsInHook makes Cluster API core say that a Machine waits in a hook.
func (w *world) waitsInHook(m *clusterv1.Machine, reason string) {
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason})
	w.must(w.client.Status().Update(context.Background(), m))
}

// departures is what Cluster API core does with Machines that are deleted: it waits for the pre-drain hooks, drains the Nodes, waits for
// the other hooks, frees the hosts and deletes the Nodes.
func (w *world) departures() {
	for _, m := range w.machines() {
		if m.DeletionTimestamp.IsZero() {
			continue
		}
		if annotations.HasWithPrefix(clusterv1.PreDrainDeleteHookAnnotationPrefix, m.Annotations) {
			w.waitsInHook(&m, clusterv1.MachineDeletingWaitingForPreDrainHookReason)
			continue
		}
		if w.releases != nil { // A Machine that waits in another hook is drained in every pass.
			w.releases.cordoned[m.Name] = true
		}
		if _, hooked := m.Annotations[bootstrapv1.AgentDeletionHook]; hooked { // The bootstrap provider has let its Agent go.
			delete(m.Annotations, bootstrapv1.AgentDeletionHook)
			w.must(w.client.Update(context.Background(), &m))
		}
		if annotations.HasWithPrefix(clusterv1.PreTerminateDeleteHookAnnotationPrefix, m.Annotations) {
			w.waitsInHook(&m, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
			continue
		}
		if host := w.installed.hosts[m.Name]; host != nil {
			host.Running, host.Ready, host.Node = false, false, false
		}
		m.Finalizers = nil
		w.must(w.client.Update(context.Background(), &m))
	}
}
