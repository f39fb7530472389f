// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// NeedsEtcdHook reports whether the Machines of a control plane carry the hook that keeps their hosts until their members have left etcd.
// The host of a single-node cluster is all of etcd, and goes with the cluster.
func NeedsEtcdHook(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) bool {
	return ptr.Deref(controlPlane.Spec.Replicas, 0) > 1
}

// EtcdHooks are the hooks of etcd that the Machines of a control plane carry.
func EtcdHooks(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) []string {
	if !NeedsEtcdHook(controlPlane) {
		return nil
	}
	return []string{controlplanev1.EtcdHookAnnotation, controlplanev1.EtcdDrainHookAnnotation}
}

// HasEtcdHook reports whether a Machine carries the hook that keeps its host until its member has left etcd.
func HasEtcdHook(m *clusterv1.Machine) bool {
	_, ok := m.Annotations[controlplanev1.EtcdHookAnnotation]
	return ok
}

// InEtcdHook reports whether a Machine is being deleted and nothing but the hook of etcd keeps its host any more: its Node is drained, and
// the other hooks, that of its Agent among them, are gone (CONTRACT KCP-24).
func InEtcdHook(m *clusterv1.Machine) bool {
	return inHook(m, controlplanev1.EtcdHookAnnotation, clusterv1.PreTerminateDeleteHookAnnotationPrefix,
		clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
}

// InEtcdDrainHook reports whether a Machine is being deleted and nothing but the pre-drain hook of etcd keeps its Node from being drained.
func InEtcdDrainHook(m *clusterv1.Machine) bool {
	return inHook(m, controlplanev1.EtcdDrainHookAnnotation, clusterv1.PreDrainDeleteHookAnnotationPrefix,
		clusterv1.MachineDeletingWaitingForPreDrainHookReason)
}

// inHook reports whether a hook is the only one of its kind that a Machine that is being deleted waits in.
func inHook(m *clusterv1.Machine, hook, kind, reason string) bool {
	if _, hooked := m.Annotations[hook]; m.DeletionTimestamp.IsZero() || !hooked {
		return false
	}
	for key := range m.Annotations {
		if strings.HasPrefix(key, kind) && key != hook {
			return false
		}
	}
	return deletes(m, reason)
}

// deletes reports whether Cluster API says that the deletion of a Machine is at a point.
func deletes(m *clusterv1.Machine, reason string) bool {
	deleting := conditions.Get(m, clusterv1.MachineDeletingCondition)
	return deleting != nil && deleting.Status == metav1.ConditionTrue && deleting.Reason == reason
}

// IsDrained reports whether the Node of a Machine that is being deleted is being drained.
func IsDrained(m *clusterv1.Machine) bool {
	return !m.DeletionTimestamp.IsZero() && deletes(m, clusterv1.MachineDeletingDrainingNodeReason)
}

// KeepsHost reports whether a Machine that is being deleted has its Node drained, or has it drained already, and keeps its host until its
// member has left etcd: its host goes, but not yet.
func KeepsHost(m *clusterv1.Machine) bool { return InEtcdHook(m) || HasEtcdHook(m) && IsDrained(m) }

// NodeOf is the Node of a control-plane Machine; nil when there is none. A Node of the name that status.nodeRef has, and with the provider
// ID of another Machine, is that of a host that was given the name later. A Machine without status.nodeRef may have a Node that nobody has
// given a provider ID yet: it has the Machine's address.
func (w Workload) NodeOf(m *clusterv1.Machine) *workload.ControlPlaneNode {
	for i := range w.Nodes {
		node := &w.Nodes[i]
		switch {
		case node.ProviderID != "" && m.Spec.ProviderID != "":
			if node.ProviderID == m.Spec.ProviderID {
				return node
			}
		case m.Status.NodeRef.IsDefined() && node.Name == m.Status.NodeRef.Name:
			return node
		case !m.Status.NodeRef.IsDefined() && node.ProviderID == "" && sharesAddress(node, m):
			return node
		}
	}
	return nil
}

func sharesAddress(node *workload.ControlPlaneNode, m *clusterv1.Machine) bool {
	return slices.ContainsFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool {
		return a.Type == clusterv1.MachineInternalIP && slices.Contains(node.Addresses, a.Address)
	})
}
