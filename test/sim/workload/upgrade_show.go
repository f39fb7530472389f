// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// The annotations in which the machine-config operator keeps what a Node has and should have.
const (
	currentConfigAnnotation = "machineconfiguration.openshift.io/currentConfig"
	desiredConfigAnnotation = "machineconfiguration.openshift.io/desiredConfig"
	stateAnnotation         = "machineconfiguration.openshift.io/state"
)

// updateView is what the operators say, all of one moment.
type updateView struct {
	version   configv1.ClusterVersionStatus
	gates     map[string]string
	operators []upgrade.Operator
	pools     []upgrade.Pool
	machines  map[string]upgrade.Machine
}

// showUpdates writes what has changed of what the operators say, and does what they do to Nodes.
func (c *cluster) showUpdates(ctx context.Context, spec assisted.ClusterSpec, nodes []corev1.Node) error {
	view := updateView{machines: map[string]upgrade.Machine{}}
	seen := false
	c.updates.with(func(m *upgrade.Cluster) {
		seen = true
		view.version, view.gates, view.operators, view.pools = m.Status(), maps.Clone(m.Gates()), m.Operators(), m.Pools()
		for _, node := range nodes {
			view.machines[node.Name] = m.Machine(node.Name)
		}
	})
	if !seen {
		return nil
	}
	var errs []error
	for i := range nodes {
		errs = append(errs, c.showMachine(ctx, spec, &nodes[i], view.machines[nodes[i].Name]))
	}
	return errors.Join(append(errs,
		c.showPools(ctx, spec, view.pools), c.showOperators(ctx, view.operators), c.showGates(ctx, view.gates),
		c.showVersion(ctx, view.version))...)
}

// showVersion writes the status of the ClusterVersion. What somebody else writes stands until the operator has something else to say.
func (c *cluster) showVersion(ctx context.Context, wanted configv1.ClusterVersionStatus) error {
	if c.updates.shownVersion != nil && equality.Semantic.DeepEqual(*c.updates.shownVersion, wanted) {
		return nil
	}
	o := &configv1.ClusterVersion{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: versionName}, o); err != nil {
		return fmt.Errorf("cannot read the ClusterVersion: %w", err)
	}
	before := o.DeepCopy()
	wanted.DeepCopyInto(&o.Status)
	o.Status.VersionHash = before.Status.VersionHash
	if err := c.client.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of the ClusterVersion: %w", err)
	}
	c.updates.shownVersion = &wanted
	return nil
}

// showGates writes the ConfigMap of what has to be acknowledged.
func (c *cluster) showGates(ctx context.Context, gates map[string]string) error {
	o := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, adminGates, o); err != nil {
		return fmt.Errorf("cannot read ConfigMap %s: %w", adminGates, err)
	}
	if maps.Equal(o.Data, gates) {
		return nil
	}
	before := o.DeepCopy()
	o.Data = gates
	if err := c.client.Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write ConfigMap %s: %w", adminGates, err)
	}
	return nil
}

// showMachine cordons, drains and uncordons a Node, and lets it tell of its release.
func (c *cluster) showMachine(ctx context.Context, spec assisted.ClusterSpec, node *corev1.Node, machine upgrade.Machine) error {
	before := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[currentConfigAnnotation] = machine.CurrentConfig
	node.Annotations[desiredConfigAnnotation] = machine.DesiredConfig
	node.Annotations[stateAnnotation] = machine.State
	node.Spec.Unschedulable = machine.Drains || node.Spec.Unschedulable && !machine.Uncordons
	if !equality.Semantic.DeepEqual(before, node) {
		if err := client.IgnoreNotFound(c.client.Patch(ctx, node, client.MergeFrom(before))); err != nil {
			return fmt.Errorf("cannot write Node %s of cluster %s: %w", node.Name, spec.Key, err)
		}
	}
	delete(c.updates.drained, node.Name)
	if machine.Drains {
		drained, err := c.drain(ctx, node.Name)
		if err != nil {
			return err
		}
		c.updates.drained[node.Name] = drained
	}
	return c.showKubelet(ctx, spec, node, machine)
}

// showKubelet writes of which release the kubelet is that runs on a Node, when it has got another. What a kubelet reported first stands.
func (c *cluster) showKubelet(ctx context.Context, spec assisted.ClusterSpec, node *corev1.Node, machine upgrade.Machine) error {
	shown, known := c.updates.kubelets[node.Name]
	if known && (shown == machine.Release.Image || machine.Away || !c.runs(node.Name)) {
		return nil
	}
	if known {
		before := node.DeepCopy()
		node.Status.NodeInfo.KubeletVersion, node.Status.NodeInfo.OSImage = machine.Release.KubeletVersion, machine.Release.OSImage
		if err := client.IgnoreNotFound(c.client.Status().Patch(ctx, node, client.MergeFrom(before))); err != nil {
			return fmt.Errorf("cannot write the status of Node %s of cluster %s: %w", node.Name, spec.Key, err)
		}
	}
	c.updates.kubelets[node.Name] = machine.Release.Image
	return nil
}
