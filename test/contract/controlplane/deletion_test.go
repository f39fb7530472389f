// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// beginDeletion pauses the control plane and deletes the Cluster, until the control plane is to be deleted.
func (s *story) beginDeletion(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Annotations[clusterv1.PausedAnnotation] = ""
	})
	eventually(t, settleTimeout, func(g Gomega) { expect(g, s.controlPlane(g), clusterv1.PausedCondition, metav1.ConditionTrue) })
	g.Expect(s.world.Client.Delete(t.Context(), s.cluster(g))).To(Succeed())
	eventually(t, deleteTimeout, func(g Gomega) { g.Expect(s.controlPlane(g).DeletionTimestamp.IsZero()).To(BeFalse()) })
}

func (s *story) workersFirst(t *testing.T) {
	g := NewWithT(t)
	list := &clusterv1.MachineList{}
	g.Expect(s.world.Client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	g.Expect(list.Items).To(HaveLen(replicas), "the workers are gone, and no other Machine")
	infraCluster := newMetal3("Metal3Cluster")
	s.get(g, clusterName, infraCluster)
	g.Expect(infraCluster.GetDeletionTimestamp().IsZero()).To(BeTrue())
}

func (s *story) pausedWhileDeleting(t *testing.T) {
	consistently(t, func(g Gomega) {
		machines := s.machines(g)
		g.Expect(machines).To(HaveLen(replicas))
		for _, m := range machines {
			g.Expect(m.DeletionTimestamp.IsZero()).To(BeTrue())
		}
	})
}

// endDeletion lets the control plane go, and waits until the Cluster is gone.
func (s *story) endDeletion(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		delete(cp.Annotations, clusterv1.PausedAnnotation)
	})
	g.Expect(s.world.Watch.Await(t.Context(), deleteTimeout, "the deletion of the cluster", s.world.Gone(s.key()))).To(Succeed())
	g.Expect(s.world.Watch.Await(t.Context(), settleTimeout, "the hosts", s.world.HostsAvailable(namespace, replicas+workers))).To(Succeed())
}

func (s *story) deletionOrder(t *testing.T) {
	g := NewWithT(t)
	manager := s.world.ControlPlane.User
	var order []string
	deleted := map[string]bool{}
	for _, e := range s.writes(g, func(e *auditv1.Event) bool {
		return by(manager, "delete", "machines")(e) || by("", "delete", "metal3machines")(e) ||
			by(manager, "delete", "agentclusterinstalls")(e) ||
			by("", "delete", "metal3clusters")(e)
	}) {
		// A manager that does not see its own deletion yet may ask for it again.
		if key := e.ObjectRef.Resource + "/" + e.ObjectRef.Name; !deleted[key] {
			deleted[key] = true
			order = append(order, e.ObjectRef.Resource)
		}
	}
	// The workers' infrastructure went before.
	g.Expect(order[slices.Index(order, "machines"):]).To(Equal([]string{
		"machines", "machines", "machines", "metal3machines", "metal3machines", "metal3machines", "agentclusterinstalls", "metal3clusters",
	}))
}

func (s *story) machineDeletionOrder(t *testing.T) {
	g := NewWithT(t)
	writes := s.writes(g, func(e *auditv1.Event) bool {
		return by("", "delete", "agents")(e) || by("", "delete", "metal3machines")(e) || by("", "delete", "openshiftassistedconfigs")(e)
	})
	index := func(resource, name string) int {
		return slices.IndexFunc(writes, func(e *auditv1.Event) bool { return e.ObjectRef.Resource == resource && e.ObjectRef.Name == name })
	}
	machines, _ := s.history()
	reasons := map[string][]string{}
	for _, m := range machines {
		if reason := conditions.GetReason(m, clusterv1.MachineDeletingCondition); !m.DeletionTimestamp.IsZero() && reason != "" {
			reasons[m.Name] = append(reasons[m.Name], reason)
		}
	}
	g.Expect(reasons).To(HaveLen(replicas))
	for name, seen := range reasons {
		g.Expect(index("metal3machines", name)).To(BeNumerically(">=", 0), name)
		g.Expect(index("openshiftassistedconfigs", name)).To(BeNumerically(">", index("metal3machines", name)), name)
		g.Expect(slices.Compact(seen)).To(ContainElements(
			clusterv1.MachineDeletingWaitingForPreTerminateHookReason, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason), name)
		g.Expect(slices.Index(seen, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)).To(
			BeNumerically("<", slices.Index(seen, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)), name)
	}
}

func (s *story) nodesAreLeft(t *testing.T) {
	g := NewWithT(t)
	machines, _ := s.history()
	for _, m := range machines {
		g.Expect(conditions.GetReason(m, clusterv1.MachineDeletingCondition)).NotTo(Or(
			Equal(clusterv1.MachineDeletingDrainingNodeReason), Equal(clusterv1.MachineDeletingDeletingNodeReason)), m.Name)
	}
}
