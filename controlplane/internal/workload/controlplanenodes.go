// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ControlPlaneNodes lists and deletes the Nodes on which etcd runs.
type ControlPlaneNodes interface {
	// ControlPlaneNodes asks the cluster's API server now for the Nodes of the control plane, arbiters included, sorted by name.
	ControlPlaneNodes(ctx context.Context, cluster client.ObjectKey) ([]ControlPlaneNode, error)
	// DeleteNode deletes a Node. It reports whether this call began the deletion: a Node that is gone, or whose successor of the same name has
	// another UID, is no error.
	DeleteNode(ctx context.Context, cluster client.ObjectKey, name string, uid types.UID) (bool, error)
	// MachineAPI asks now whether the cluster has a Machine API that works: one with a Machine that runs. The operator of etcd adds and
	// removes members by that then.
	MachineAPI(ctx context.Context, cluster client.ObjectKey) (bool, error)
}

// ControlPlaneNode is a Node of the control plane.
type ControlPlaneNode struct {
	Name string
	UID  types.UID
	// ProviderID is that of its host; empty until the infrastructure provider has set it.
	ProviderID string
	// Addresses are its internal IP addresses.
	Addresses []string
	// DeletionTimestamp is when its deletion began; nil when it has not.
	DeletionTimestamp *metav1.Time
	// Cordoned: no new Pods are placed on it, because it is being drained or restarted. Changing: the machine-config operator gives it another
	// configuration, for which it is restarted.
	Cordoned, Changing bool
	// Ready is False also when it is Unknown, which it is when the kubelet is silent.
	Ready bool
}

// The annotations of a Node in which the machine-config operator has the configuration that it runs, and the one that it is to run.
const (
	currentConfig = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig = "machineconfiguration.openshift.io/desiredConfig"
)

// nodeRoles are the labels of the Nodes on which the operator of etcd runs members.
func nodeRoles() []string {
	return []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/arbiter"}
}

// ControlPlaneNodes lists twice, since no selector has the one or the other label: all Nodes of a cluster may be hundreds.
func (c Cached) ControlPlaneNodes(ctx context.Context, cluster client.ObjectKey) ([]ControlPlaneNode, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var nodes []ControlPlaneNode
	for _, label := range nodeRoles() {
		list := &corev1.NodeList{}
		if err := remote.List(ctx, list, client.HasLabels{label}); err != nil {
			return nil, fmt.Errorf("list Nodes with label %s of Cluster %s: %w", label, cluster, err)
		}
		for i := range list.Items {
			nodes = append(nodes, controlPlaneNodeOf(&list.Items[i]))
		}
	}
	slices.SortStableFunc(nodes, func(a, b ControlPlaneNode) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(nodes, func(a, b ControlPlaneNode) bool { return a.Name == b.Name }), nil
}

func controlPlaneNodeOf(node *corev1.Node) ControlPlaneNode {
	n := ControlPlaneNode{Name: node.Name, UID: node.UID, ProviderID: node.Spec.ProviderID, DeletionTimestamp: node.DeletionTimestamp,
		Cordoned: node.Spec.Unschedulable, Changing: node.Annotations[currentConfig] != node.Annotations[desiredConfig]}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			n.Addresses = append(n.Addresses, address.Address)
		}
	}
	n.Ready = slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	return n
}

// DeleteNode deletes the very Node of this UID: a host that registered meanwhile under the same name keeps its own.
func (c Cached) DeleteNode(ctx context.Context, cluster client.ObjectKey, name string, uid types.UID) (bool, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return false, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = remote.Delete(ctx, node, client.Preconditions{UID: &uid})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete Node %s of Cluster %s: %w", name, cluster, err)
	}
	return true, nil
}

// machineAPIPage is how many Machines of the Machine API are read at a time. There are none in the clusters that the Assisted Installer
// installs without platform baremetal, and one a host in others.
const machineAPIPage = 500

// machineOfMachineAPI is the Machine of OpenShift's Machine API, whose Go type nobody here needs.
var machineOfMachineAPI = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}

// MachineAPI reads until it finds a Machine that runs.
func (c Cached) MachineAPI(ctx context.Context, cluster client.ObjectKey) (bool, error) {
	remote, err := c.live(ctx, cluster)
	if err != nil {
		return false, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machineOfMachineAPI.GroupVersion().WithKind(machineOfMachineAPI.Kind + "List"))
	for {
		err := remote.List(ctx, list, client.InNamespace("openshift-machine-api"), client.Limit(machineAPIPage),
			client.Continue(list.GetContinue()))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return false, nil // The capability is off.
		case err != nil:
			return false, fmt.Errorf("list the Machines of the Machine API of Cluster %s: %w", cluster, err)
		}
		for i := range list.Items {
			if phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase"); phase == "Running" {
				return true, nil
			}
		}
		if list.GetContinue() == "" {
			return false, nil
		}
	}
}
