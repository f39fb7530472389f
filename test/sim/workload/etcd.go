// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// etcdNamespace is where etcd and its operator live.
const etcdNamespace = "openshift-etcd"

// syncEtcd lets etcd and its operator do their next step, and shows in the API what they show. etcd begins with the hosts of the
// installation, when that is complete.
func (c *cluster) syncEtcd(ctx context.Context, spec assisted.ClusterSpec) error {
	hosts, err := c.etcdHosts(ctx, spec)
	if err != nil {
		return err
	}
	c.tickEtcd(spec, hosts)
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
	if err := c.showEtcdOperator(ctx); err != nil {
		return err
	}
	return c.showEtcdPods(ctx)
}

// tickEtcd lets etcd do its next step, after it has begun.
func (c *cluster) tickEtcd(spec assisted.ClusterSpec, hosts []etcd.Host) {
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	if c.etcd == nil {
		seed := fnv.New64a()
		_, _ = seed.Write([]byte(spec.Key.String()))
		c.etcd = etcd.New(seed.Sum64(), c.manager.opts.Etcd)
		c.etcd.Bootstrap(hosts)
	}
	c.etcd.Tick(time.Now(), hosts)
	c.lostQuorum = c.lostQuorum || !c.etcd.Quorum()
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
	c.lostQuorum = c.lostQuorum || !c.etcd.Quorum()
	return result
}

// etcdHosts are the control-plane hosts with their Nodes, and Nodes that no host has any more.
func (c *cluster) etcdHosts(ctx context.Context, spec assisted.ClusterSpec) ([]etcd.Host, error) {
	nodes := map[string]corev1.Node{}
	list := &corev1.NodeList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list the Nodes of cluster %s: %w", spec.Key, err)
	}
	for _, node := range list.Items {
		_, master := node.Labels["node-role.kubernetes.io/master"]
		_, arbiter := node.Labels["node-role.kubernetes.io/arbiter"]
		if master || arbiter {
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
		host.Name, host.Address, host.Disk, host.Running = h.Name, firstAddress(h.Addresses), h.Disk, h.Running
		hosts = append(hosts, host)
	}
	for name, node := range nodes {
		host := etcdHost(node, true)
		host.Name = name
		hosts = append(hosts, host)
	}
	slices.SortFunc(hosts, func(a, b etcd.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts, nil
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

// showEtcdOperator writes what others say of the state of etcd, when that changes: its ClusterOperator; the ClusterVersion, which is
// failing while an operator is degraded; the operator of the API servers, which restart one after the other when the members change; and
// those with a static Pod on each host, which are degraded while a host is silent. What somebody else writes stands until then.
func (c *cluster) showEtcdOperator(ctx context.Context) error {
	report := c.operatorOfEtcd()
	stable := !slices.ContainsFunc(
		report.NodeStatuses,
		func(node etcd.NodeStatus) bool { return node.Current != report.LatestAvailableRevision },
	)
	nodes := report.Condition("NodeControllerDegraded")
	silent := nodes.Status == etcd.True && time.Since(nodes.Since) >= c.manager.opts.Etcd.DegradedInertia
	if slices.Equal(report.ClusterOperator, c.shownOperator) && stable == c.shownStable && silent == c.shownSilent {
		return nil
	}
	var own []configv1.ClusterOperatorStatusCondition
	failing := configv1.ClusterOperatorStatusCondition{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: metav1.Now()}
	for _, condition := range report.ClusterOperator {
		own = append(own, configv1.ClusterOperatorStatusCondition{
			Type: configv1.ClusterStatusConditionType(condition.Type), Status: configv1.ConditionStatus(condition.Status),
			Reason: condition.Reason, Message: condition.Message, LastTransitionTime: metav1.NewTime(condition.Since).Rfc3339Copy(),
		})
		if condition.Type == string(configv1.OperatorDegraded) && condition.Status == string(configv1.ConditionTrue) {
			failing.Status, failing.Reason = configv1.ConditionTrue, "ClusterOperatorDegraded"
			failing.Message = "Cluster operator etcd is degraded"
		}
	}
	if err := c.patchOperator(ctx, "etcd", own...); err != nil {
		return err
	}
	restarts := configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, Reason: "AsExpected", LastTransitionTime: metav1.Now(),
	}
	if !stable {
		restarts.Status, restarts.Reason = configv1.ConditionTrue, "NodeInstaller"
	}
	if err := c.patchOperator(ctx, "kube-apiserver", restarts); err != nil {
		return err
	}
	degraded := configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, Reason: "AsExpected", LastTransitionTime: metav1.Now(),
	}
	if silent {
		degraded.Status, degraded.Reason, degraded.Message = configv1.ConditionTrue, "NodeController_MasterNodesReady", nodes.Message
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if err := c.patchOperator(ctx, name, degraded); err != nil {
			return err
		}
	}
	if err := c.patchVersion(ctx, failing); err != nil {
		return err
	}
	c.shownOperator, c.shownStable, c.shownSilent = report.ClusterOperator, stable, silent
	return nil
}

// patchOperator writes conditions of a ClusterOperator, and leaves its others.
func (c *cluster) patchOperator(ctx context.Context, name string, written ...configv1.ClusterOperatorStatusCondition) error {
	o := &configv1.ClusterOperator{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, o); err != nil {
		return fmt.Errorf("cannot read ClusterOperator %s: %w", name, err)
	}
	before := o.DeepCopy()
	o.Status.Conditions = replaced(o.Status.Conditions, written)
	if err := c.client.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of ClusterOperator %s: %w", name, err)
	}
	return nil
}

// patchVersion writes a condition of the ClusterVersion, and leaves its others.
func (c *cluster) patchVersion(ctx context.Context, written configv1.ClusterOperatorStatusCondition) error {
	o := &configv1.ClusterVersion{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: "version"}, o); err != nil {
		return fmt.Errorf("cannot read the ClusterVersion: %w", err)
	}
	before := o.DeepCopy()
	o.Status.Conditions = replaced(o.Status.Conditions, []configv1.ClusterOperatorStatusCondition{written})
	if err := c.client.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of the ClusterVersion: %w", err)
	}
	return nil
}

// replaced are conditions with those of the same types replaced by others.
func replaced(conditions, written []configv1.ClusterOperatorStatusCondition) []configv1.ClusterOperatorStatusCondition {
	kept := slices.DeleteFunc(slices.Clone(conditions), func(have configv1.ClusterOperatorStatusCondition) bool {
		return slices.ContainsFunc(written, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == have.Type })
	})
	return append(kept, written...)
}
