// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// syncNodes moves every host of the cluster one step: joined, labelled, ready; or not ready when its machine is off or no
// longer part of the cluster.
func (c *cluster) syncNodes(ctx context.Context, spec assisted.ClusterSpec) error {
	status := map[string]assisted.NodeStatus{}
	for _, host := range spec.Nodes {
		state, err := c.syncNode(ctx, host)
		if err != nil {
			return err
		}
		status[host.Name] = state
	}
	gone := slices.AppendSeq(slices.Collect(maps.Keys(c.nodes)), maps.Keys(c.silent))
	slices.Sort(gone)
	for _, name := range slices.Compact(gone) {
		if _, known := status[name]; known {
			continue
		}
		if err := c.stopKubelet(ctx, name); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Nodes = status
	return nil
}

// stopKubelet is what the cluster sees of a machine that lost power: after a while nobody knows how its Node is, and if that is deleted it
// stays so until the kubelet starts again.
func (c *cluster) stopKubelet(ctx context.Context, name string) error {
	delete(c.nodes, name)
	if _, known := c.silent[name]; !known {
		c.silent[name] = time.Now()
	}
	if time.Since(c.silent[name]) < c.manager.opts.LostDelay {
		return nil
	}
	node := &corev1.Node{}
	if err := c.client.Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			delete(c.silent, name)
			return nil
		}
		return fmt.Errorf("cannot read Node %s: %w", name, err)
	}
	return c.setReady(ctx, node, corev1.ConditionUnknown)
}

// restartKubelet is what the cluster sees of a host that restarts with another release. Its kubelet is silent, has its certificate still
// when it comes back, and registers anew.
func (c *cluster) restartKubelet(ctx context.Context, name string) error {
	progress := &nodeProgress{started: time.Now(), restarted: true}
	if former := c.nodes[name]; former != nil {
		progress.labelled, progress.requested = former.labelled, former.requested
	}
	err := c.stopKubelet(ctx, name)
	c.nodes[name] = progress
	return err
}

// since is when a kubelet began to become ready.
func (p *nodeProgress) since() time.Time {
	if p.restarted && p.joined.IsZero() {
		return p.started
	}
	return p.joined
}

func (c *cluster) syncNode(ctx context.Context, host assisted.NodeSpec) (assisted.NodeStatus, error) {
	if !host.Running {
		return assisted.NodeStatus{}, c.stopKubelet(ctx, host.Name)
	}
	if c.updates.away(host.Name) {
		return assisted.NodeStatus{Joined: true}, c.restartKubelet(ctx, host.Name)
	}
	delete(c.silent, host.Name)
	now := time.Now()
	progress := c.progressOf(host, now)
	node := &corev1.Node{}
	err := c.client.Get(ctx, types.NamespacedName{Name: host.Name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return assisted.NodeStatus{}, c.join(ctx, host, progress, now)
	case err != nil:
		return assisted.NodeStatus{}, fmt.Errorf("cannot read Node %s: %w", host.Name, err)
	}
	if c.manager.opts.ServingCSRs && !progress.requested {
		if _, err := c.requestServing(ctx, host.Name, append([]string{host.Name}, host.Addresses...)); err != nil {
			return assisted.NodeStatus{}, err
		}
		progress.requested = true
	}
	ready := now.Sub(progress.since()) >= c.manager.opts.ReadyDelay
	if err := c.setReady(ctx, node, readiness(ready)); err != nil {
		return assisted.NodeStatus{}, err
	}
	if !progress.labelled && (!host.Day2 || ready && host.Served) {
		if err := c.label(ctx, node, host.Labels); err != nil {
			return assisted.NodeStatus{}, err
		}
		progress.labelled = true
	}
	return assisted.NodeStatus{Joined: true, Ready: ready && progress.labelled}, nil
}

// progressOf is how far a host that runs is. Its kubelet gets its certificate while the service looks after it.
func (c *cluster) progressOf(host assisted.NodeSpec, now time.Time) *nodeProgress {
	if host.Served {
		c.admitted[host.Disk] = true
	}
	if c.nodes[host.Name] == nil {
		c.nodes[host.Name] = &nodeProgress{started: now}
	}
	return c.nodes[host.Name]
}

// readiness is the status of the condition Ready.
func readiness(ready bool) corev1.ConditionStatus {
	if ready {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// join creates the Node as its kubelet does: with its role, without the labels that the installer adds later, and without a provider ID
// unless the cluster's own Machine API sets one. The kubelet of a day-2 host has no certificate before assisted-service has approved that
// it gets one.
func (c *cluster) join(ctx context.Context, host assisted.NodeSpec, progress *nodeProgress, now time.Time) error {
	// A kubelet registers once: a Node that somebody deletes does not come back before the next boot.
	waits := host.Day2 && !c.admitted[host.Disk]
	if waits || !progress.joined.IsZero() || now.Sub(progress.started) < c.manager.opts.JoinDelay {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host.Name, Labels: map[string]string{
		corev1.LabelHostname: host.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: architecture(host),
	}}}
	switch host.Role {
	case "master":
		node.Labels["node-role.kubernetes.io/master"] = ""
		node.Labels["node-role.kubernetes.io/control-plane"] = ""
		node.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}}
	case "arbiter":
		node.Labels["node-role.kubernetes.io/arbiter"] = ""
		node.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/arbiter", Effect: corev1.TaintEffectNoSchedule}}
	default:
		node.Labels["node-role.kubernetes.io/worker"] = ""
	}
	if c.wanted().MachineAPI {
		// The Machine API and Metal3 race for the field, and the first writer wins. Here the Machine API does, which is the worse case.
		node.Spec.ProviderID = "baremetalhost:///" + machineAPINamespace + "/" + host.Name
	}
	if err := c.client.Create(ctx, node); err != nil {
		return fmt.Errorf("cannot create Node %s: %w", host.Name, err)
	}
	progress.joined = now
	before := node.DeepCopy()
	release := c.boot(host)
	node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.OSImage = release.KubeletVersion, release.OSImage
	node.Status.NodeInfo.OperatingSystem, node.Status.NodeInfo.Architecture = "linux", architecture(host)
	node.Status.NodeInfo.MachineID, node.Status.NodeInfo.SystemUUID = host.Name, host.Name
	node.Status.Addresses = nodeAddresses(host)
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = c.kubelets.port()
	node.Status.Conditions = nodeConditions(corev1.ConditionFalse)
	if err := c.client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of Node %s: %w", host.Name, err)
	}
	return nil
}

// architecture is that of a host in the spelling of Kubernetes.
func architecture(host assisted.NodeSpec) string {
	switch host.Architecture {
	case "", "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	default:
		return host.Architecture
	}
}

func nodeAddresses(host assisted.NodeSpec) []corev1.NodeAddress {
	out := []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: host.Name}, {Type: corev1.NodeInternalDNS, Address: kubeletName},
	}
	for _, address := range host.Addresses {
		if net.ParseIP(address) != nil {
			out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
	}
	return out
}

// nodeConditions are all that a kubelet reports: Cluster API takes a Node for healthy only when it knows each of them. When it has been
// silent for long, the controller of Nodes makes all of them unknown, with the same reason.
func nodeConditions(ready corev1.ConditionStatus) []corev1.NodeCondition {
	now := metav1.Now()
	out := []corev1.NodeCondition{nodeReady(ready, now)}
	for conditionType, reason := range map[corev1.NodeConditionType]string{
		corev1.NodeMemoryPressure: "KubeletHasSufficientMemory",
		corev1.NodeDiskPressure:   "KubeletHasNoDiskPressure",
		corev1.NodePIDPressure:    "KubeletHasSufficientPID",
	} {
		c := corev1.NodeCondition{
			Type: conditionType, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now, Reason: reason,
		}
		if ready == corev1.ConditionUnknown {
			c.Status, c.Reason, c.Message = out[0].Status, out[0].Reason, out[0].Message
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b corev1.NodeCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	return out
}

func nodeReady(status corev1.ConditionStatus, now metav1.Time) corev1.NodeCondition {
	c := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, LastHeartbeatTime: now, LastTransitionTime: now,
		Reason: "KubeletReady", Message: "kubelet is posting ready status",
	}
	switch status {
	case corev1.ConditionFalse:
		c.Reason, c.Message = "KubeletNotReady", "container runtime network not ready"
	case corev1.ConditionUnknown:
		c.Reason, c.Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
	case corev1.ConditionTrue:
	}
	return c
}

// setReady writes the conditions when Ready changes.
func (c *cluster) setReady(ctx context.Context, node *corev1.Node, want corev1.ConditionStatus) error {
	index := slices.IndexFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool { return condition.Type == corev1.NodeReady })
	if index >= 0 && node.Status.Conditions[index].Status == want {
		return nil
	}
	before := node.DeepCopy()
	node.Status.Conditions = nodeConditions(want)
	if err := c.client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of Node %s: %w", node.Name, err)
	}
	return nil
}

func (c *cluster) label(ctx context.Context, node *corev1.Node, labels map[string]string) error {
	before := node.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, labels)
	if err := c.client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot label Node %s: %w", node.Name, err)
	}
	return nil
}

func (c *cluster) removeNode(ctx context.Context, name string) error {
	err := c.client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete Node %s: %w", name, err)
	}
	return nil
}
