// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	// upgraded is the version to which Nodes are upgraded in place, and rolledOut the one after it.
	upgraded  = "v1.33.5"
	rolledOut = "v1.33.6"
	// followTimeout is for what happens without a host.
	followTimeout = 2 * time.Minute
)

// upgradeNode does what the machine-config operator does to a Node, as far as Cluster API sees it.
func (s workersStory) upgradeNode(t *testing.T, machine clusterv1.Machine, version string) {
	t.Helper()
	node := s.node(t, machine.Status.NodeRef.Name)
	patch := client.MergeFrom(node.DeepCopy())
	node.Status.NodeInfo.KubeletVersion = version
	NewWithT(t).Expect(s.installed(t).Status().Patch(t.Context(), node, patch)).To(Succeed())
}

func (s workersStory) bump(t *testing.T, version string) {
	t.Helper()
	deployment := s.deployment(t)
	change(t, deployment, func() { deployment.Spec.Template.Spec.Version = version })
}

// sets are the MachineSets.
func (s workersStory) sets(t *testing.T, g Gomega) []clusterv1.MachineSet {
	t.Helper()
	list := &clusterv1.MachineSetList{}
	g.Expect(world.Client.List(t.Context(), list, client.InNamespace(s.key.Namespace))).To(Succeed())
	return list.Items
}

// followUpgrade leans on what Cluster API does with a MachineDeployment whose strategy is OnDelete, and with a MachineSet that becomes its
// current one (docs/adr/0008). It fails when a newer Cluster API does otherwise.
func (s workersStory) followUpgrade(t *testing.T) {
	before := s.machines(t, NewWithT(t))
	machineSet := before[0].OwnerReferences[0].UID
	s.bump(t, upgraded)
	s.eventually(t, func(g Gomega) {
		g.Expect(s.sets(t, g)).To(HaveLen(2), "Cluster API makes a MachineSet of the new version")
		for _, m := range s.machines(t, g) {
			g.Expect(conditions.IsFalse(&m, clusterv1.MachineUpToDateCondition)).To(BeTrue(), m.Name)
		}
	})
	s.upgradeNode(t, before[0], upgraded)
	s.eventually(t, func(g Gomega) {
		machines := s.machines(t, g)
		g.Expect(machines[0].Spec.Version).To(Equal(upgraded))
		g.Expect(machines[1].Spec.Version).NotTo(Equal(upgraded))
	})
	s.upgradeNode(t, before[1], upgraded)
	s.eventually(t, func(g Gomega) {
		sets := s.sets(t, g)
		g.Expect(sets).To(HaveLen(1), "Cluster API deletes the MachineSet that is not needed")
		g.Expect(sets[0].UID).To(Equal(machineSet))
		for i, m := range s.machines(t, g) {
			g.Expect(m.UID).To(Equal(before[i].UID))
			g.Expect(m.Spec.Version).To(Equal(upgraded))
			g.Expect(conditions.IsTrue(&m, clusterv1.MachineUpToDateCondition)).To(BeTrue(), m.Name)
		}
		deployment := s.deployment(t)
		g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(len(before))))
		g.Expect(conditions.IsFalse(deployment, clusterv1.MachineDeploymentRollingOutCondition)).To(BeTrue())
		g.Expect(s.reasons(t, g)).To(ContainElement(controlplanev1.EventWorkersFollowed))
	})
	s.expectWorkers(t, joinTimeout, len(before))
}

// rollOutVersion is about a MachineDeployment whose strategy is RollingUpdate.
func (s workersStory) rollOutVersion(t *testing.T) {
	old := s.machines(t, NewWithT(t))[0]
	var followed atomic.Bool
	world.Watch.OnChange(func(o client.Object) {
		if m, ok := o.(*clusterv1.Machine); ok && m.UID == old.UID && m.Spec.Version == rolledOut {
			followed.Store(true)
		}
	})
	s.upgradeNode(t, old, rolledOut)
	s.bump(t, rolledOut)
	s.expectReplaced(t, old)
	NewWithT(t).Expect(followed.Load()).To(BeFalse(), "nobody else writes the version of such a worker")
}

func (s workersStory) eventually(t *testing.T, check func(Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(check).WithContext(t.Context()).WithTimeout(followTimeout).WithPolling(poll).Should(Succeed())
}

// reasons are those of the events of the MachineDeployment.
func (s workersStory) reasons(t *testing.T, g Gomega) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	g.Expect(world.Client.List(t.Context(), list, client.InNamespace(s.key.Namespace))).To(Succeed())
	uid := s.deployment(t).UID
	var reasons []string
	for _, event := range list.Items {
		if event.Regarding.UID == uid {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
