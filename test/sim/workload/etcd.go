// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

const (
	// etcdNamespace is where etcd and its operator live.
	etcdNamespace = "openshift-etcd"
	// etcdOperator is the ClusterOperator of etcd.
	etcdOperator = "etcd"
)

// syncEtcd lets etcd and its operator do their next step, and shows in the API what they show. etcd begins with the hosts of the
// installation, when that is complete.
func (c *cluster) syncEtcd(ctx context.Context, spec assisted.ClusterSpec, nodes []corev1.Node) error {
	c.tickEtcd(spec, c.etcdHosts(spec, nodes))
	if !c.quorum() {
		return nil // The API does not answer either.
	}
	if !c.etcdSeeded {
		if err := c.seedEtcd(ctx); err != nil {
			return err
		}
		c.etcdSeeded = true
	}
	if err := c.showEtcd(ctx); err != nil {
		return err
	}
	return c.showEtcdPods(ctx)
}

// tickEtcd lets etcd do its next step, after it has begun.
func (c *cluster) tickEtcd(spec assisted.ClusterSpec, hosts []etcd.Host) {
	release := cmp.Or(c.updates.toward(etcdOperator), c.manager.installed(spec).Image)
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	if c.etcd == nil {
		seed := fnv.New64a()
		_, _ = seed.Write([]byte(spec.Key.String()))
		c.etcd = etcd.New(seed.Sum64(), c.manager.opts.Etcd)
		c.etcd.Release(release)
		c.etcd.Bootstrap(hosts)
	}
	c.etcd.Release(release)
	c.etcd.Tick(time.Now(), hosts)
	c.noteQuorum()
}

// noteQuorum remembers that etcd has lost its quorum. The only member of a cluster is away without anybody's fault while it gets a release.
func (c *cluster) noteQuorum() {
	alone := len(c.etcd.Members()) == 1 && c.updates.updating()
	c.lostQuorum = c.lostQuorum || !c.etcd.Quorum() && !alone
}

// Members are the members of the etcd of a cluster, by ID; none before its installation is complete.
func (m *Manager) Members(key types.NamespacedName) []etcd.Member {
	c := m.find(key)
	if c == nil {
		return nil
	}
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	if c.etcd == nil {
		return nil
	}
	return c.etcd.Members()
}

// LostQuorum reports whether the etcd of a cluster has ever had too few members that serve.
func (m *Manager) LostQuorum(key types.NamespacedName) bool {
	c := m.find(key)
	if c == nil {
		return false
	}
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	return c.lostQuorum
}

// quorum reports whether enough members of etcd serve. Before there are any, the API runs without.
func (c *cluster) quorum() bool {
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	return c.etcd == nil || c.etcd.Quorum()
}

// etcdctl runs etcdctl in a container of etcd's Pod on a host.
func (c *cluster) etcdctl(namespace, pod, container string, command []string) etcd.Result {
	host, ofEtcd := strings.CutPrefix(pod, "etcd-")
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	if c.etcd == nil || !ofEtcd || namespace != etcdNamespace || container != "etcdctl" {
		return etcd.Result{Ending: etcd.Broken}
	}
	result := c.etcd.Etcdctl(host, command)
	c.noteQuorum()
	return result
}

// etcdHosts are the control-plane hosts with their Nodes, and Nodes that no host has any more.
func (c *cluster) etcdHosts(spec assisted.ClusterSpec, all []corev1.Node) []etcd.Host {
	nodes := map[string]corev1.Node{}
	for _, node := range all {
		if roleOf(node) != upgrade.Worker {
			nodes[node.Name] = node
		}
	}
	var hosts []etcd.Host
	for _, h := range spec.Nodes {
		if h.Role == "worker" {
			continue
		}
		node, exists := nodes[h.Name]
		delete(nodes, h.Name)
		host := etcdHost(node, exists)
		host.Name, host.Address, host.Disk, host.Running = h.Name, firstAddress(h.Addresses), h.Disk, h.Running && !c.updates.away(h.Name)
		hosts = append(hosts, host)
	}
	for name, node := range nodes {
		host := etcdHost(node, true)
		host.Name = name
		hosts = append(hosts, host)
	}
	slices.SortFunc(hosts, func(a, b etcd.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

// etcdHost is a host as its Node tells of it.
func etcdHost(node corev1.Node, exists bool) etcd.Host {
	host := etcd.Host{Node: exists, Deleting: !node.DeletionTimestamp.IsZero(), Cordoned: node.Spec.Unschedulable}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && host.Address == "" {
			host.Address = address.Address
		}
	}
	host.Ready = ready(node)
	return host
}

// firstAddress is the address by which etcd knows a host.
func firstAddress(addresses []string) string {
	for _, address := range addresses {
		if net.ParseIP(address) != nil {
			return address
		}
	}
	return ""
}

// seedEtcd makes what the operator of etcd finds when it starts.
func (c *cluster) seedEtcd(ctx context.Context) error {
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: etcdNamespace}},
		&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: operatorv1.EtcdSpec{
			StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}},
		}},
	} {
		if err := c.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// operatorOfEtcd is what the operator of etcd reports.
func (c *cluster) operatorOfEtcd() etcd.Operator {
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	return c.etcd.Operator()
}

// showEtcd writes the status of the Etcd when it changes.
func (c *cluster) showEtcd(ctx context.Context) error {
	report := c.operatorOfEtcd()
	o := &operatorv1.Etcd{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: "cluster"}, o); err != nil {
		return fmt.Errorf("cannot read the Etcd: %w", err)
	}
	before := o.DeepCopy()
	o.Status.LatestAvailableRevision = report.LatestAvailableRevision
	o.Status.NodeStatuses = nil
	for _, node := range report.NodeStatuses {
		o.Status.NodeStatuses = append(o.Status.NodeStatuses, operatorv1.NodeStatus{
			NodeName: node.Name, CurrentRevision: node.Current, TargetRevision: node.Target,
		})
	}
	o.Status.Conditions = nil
	for _, condition := range report.Conditions {
		o.Status.Conditions = append(o.Status.Conditions, operatorv1.OperatorCondition{
			Type: condition.Type, Status: operatorv1.ConditionStatus(condition.Status), Reason: condition.Reason, Message: condition.Message,
			LastTransitionTime: metav1.NewTime(condition.Since).Rfc3339Copy(),
		})
	}
	if equality.Semantic.DeepEqual(before.Status, o.Status) {
		return nil
	}
	if err := c.client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("cannot write the status of the Etcd: %w", err)
	}
	return nil
}
