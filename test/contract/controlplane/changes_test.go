// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

const (
	// syncedLabel is in a domain that core brings to Nodes.
	syncedLabel = "rack.node.cluster.x-k8s.io/row"
	ownLabel    = "example.com/pool"
	foreignKey  = "example.com/theirs"
	taintKey    = "example.com/masters"
	gate        = "Racked"
)

// uids are those of the control-plane Machines: none of them may be replaced.
func (s *story) uids(g Gomega) []types.UID {
	var uids []types.UID
	for _, m := range s.machines(g) {
		uids = append(uids, m.UID)
	}
	return uids
}

// update patches an object.
func (s *story) update(g Gomega, o client.Object, change func()) {
	g.Expect(s.world.Change(context.Background(), o, change)).To(Succeed())
}

// healthCheck marks a Machine before there is a health check, whose controller takes 15 s between two looks, and while another host is
// being restarted. That the mark goes again is seen by expectReady.
func (s *story) healthCheck(t *testing.T) {
	g := NewWithT(t)
	before := s.uids(g)
	victim := &s.machines(g)[0]
	s.restarting(g, s.machines(g)[1].Status.NodeRef.Name, true)
	s.update(g, victim, func() { victim.Annotations[clusterv1.RemediateMachineAnnotation] = "" })
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName + "-masters"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: clusterName,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
			Checks:      clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](0)},
		},
	}
	g.Expect(s.world.Client.Create(t.Context(), check)).To(Succeed())
	eventually(t, settleTimeout, func(g Gomega) {
		s.get(g, victim.Name, victim)
		expect(g, victim, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse)
		expect(g, victim, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse)
		g.Expect(conditions.GetReason(victim, clusterv1.MachineOwnerRemediatedCondition)).
			To(Equal(controlplanev1.MachineRemediationDeferredReason))
		g.Expect(s.remediation(g)).To(ContainSubstring("Machine " + victim.Name))
	})
	// The Machine stays for one reason or the other: until Cluster API has been connected for two minutes, its Node may be ready without
	// anybody knowing; after that, etcd has a member that is not healthy.
	consistently(t, func(g Gomega) { g.Expect(s.uids(g)).To(Equal(before)) })
	s.update(g, victim, func() { delete(victim.Annotations, clusterv1.RemediateMachineAnnotation) })
	eventually(t, settleTimeout, func(g Gomega) {
		s.get(g, victim.Name, victim)
		g.Expect(conditions.Has(victim, clusterv1.MachineOwnerRemediatedCondition)).To(BeFalse())
	})
	s.restarting(g, s.machines(g)[1].Status.NodeRef.Name, false)
}

// restarting lets etcd be as it is while a host of the control plane restarts: its member does not serve. What the machine-config operator
// reports of its pool would be written over by its simulator.
func (s *story) restarting(g Gomega, name string, begins bool) {
	faults := etcd.Faults{}
	if begins {
		faults.Sick = map[string]bool{name: true}
	}
	g.Expect(s.world.Workload.EtcdFaults(s.install(), faults)).To(Succeed())
}

// remediation is what the control plane says of unhealthy Machines, none of which is being replaced.
func (s *story) remediation(g Gomega) string {
	controlPlane := s.controlPlane(g)
	expect(g, controlPlane, controlplanev1.RemediatingCondition, metav1.ConditionFalse)
	return conditions.GetMessage(controlPlane, controlplanev1.RemediatingCondition)
}

func (s *story) propagation(t *testing.T) {
	g := NewWithT(t)
	before := s.uids(g)
	machine := &s.machines(g)[0]
	s.update(g, machine, func() { machine.Labels[foreignKey] = "x" })
	s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Labels[ownLabel+"-of-control-plane"] = "x"
		template := &cp.Spec.MachineTemplate
		template.ObjectMeta = clusterv1.ObjectMeta{
			Labels: map[string]string{syncedLabel: "a", ownLabel: "masters"}, Annotations: map[string]string{ownLabel: "yes"},
		}
		template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
		template.Spec.Taints = []clusterv1.MachineTaint{{
			Key: taintKey, Effect: corev1.TaintEffectPreferNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways,
		}}
	})
	eventually(t, settleTimeout, func(g Gomega) {
		s.checkPropagated(g, HaveKeyWithValue(ownLabel, "masters"), HaveKeyWithValue(ownLabel, "yes"), HaveValue(BeEquivalentTo(60)))
		s.checkNodes(g, HaveKeyWithValue(syncedLabel, "a"), ContainElement(HaveField("Key", taintKey)))
	})
	s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		delete(cp.Labels, ownLabel+"-of-control-plane")
		template := &cp.Spec.MachineTemplate
		template.ObjectMeta, template.Spec.Taints = clusterv1.ObjectMeta{}, nil
		template.Spec.Deletion = controlplanev1.MachineDeletionSpec{}
	})
	eventually(t, settleTimeout, func(g Gomega) {
		s.checkPropagated(g, Not(HaveKey(ownLabel)), Not(HaveKey(ownLabel)), BeNil())
		s.checkNodes(g, Not(HaveKey(syncedLabel)), Not(ContainElement(HaveField("Key", taintKey))))
	})
	machine = &s.machines(g)[0]
	g.Expect(machine.Labels).To(HaveKey(foreignKey), "what others set stays")
	g.Expect(s.uids(g)).To(Equal(before))
}

// checkPropagated checks Machines, infrastructure machines and configs.
func (s *story) checkPropagated(g Gomega, labels, annotations, drain OmegaMatcher) {
	machines := s.machines(g)
	for i := range machines {
		m := &machines[i]
		for _, o := range append(s.companions(g, m), m) {
			g.Expect(o.GetLabels()).To(And(labels, Not(HaveKey(ownLabel+"-of-control-plane"))), "%T %s", o, o.GetName())
			g.Expect(o.GetAnnotations()).To(annotations, "%T %s", o, o.GetName())
		}
		g.Expect(m.Spec.Deletion.NodeDrainTimeoutSeconds).To(drain)
		expect(g, m, clusterv1.MachineUpToDateCondition, metav1.ConditionTrue)
	}
}

// checkNodes checks the Nodes of the control-plane Machines.
func (s *story) checkNodes(g Gomega, labels, taints OmegaMatcher) {
	remote := s.workload(g)
	for _, m := range s.machines(g) {
		node := &corev1.Node{}
		g.Expect(remote.Get(context.Background(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node)).To(Succeed())
		g.Expect(node.Labels).To(labels)
		g.Expect(node.Spec.Taints).To(taints)
	}
}

func (s *story) readinessGate(t *testing.T) {
	g := NewWithT(t)
	setGates := func(gates ...clusterv1.MachineReadinessGate) {
		s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.MachineTemplate.Spec.ReadinessGates = gates
		})
	}
	setGates(clusterv1.MachineReadinessGate{ConditionType: gate})
	eventually(t, settleTimeout, func(g Gomega) {
		for _, m := range s.machines(g) {
			g.Expect(conditions.IsTrue(&m, clusterv1.MachineReadyCondition)).To(BeFalse())
		}
		controlPlane := s.controlPlane(g)
		g.Expect(controlPlane.Status.ReadyReplicas).To(HaveValue(BeZero()))
		g.Expect(conditions.IsTrue(controlPlane, controlplanev1.MachinesReadyCondition)).To(BeFalse())
	})
	for _, m := range s.machines(g) {
		helper, err := patch.NewHelper(&m, s.world.Client)
		g.Expect(err).NotTo(HaveOccurred())
		conditions.Set(&m, metav1.Condition{Type: gate, Status: metav1.ConditionTrue, Reason: gate})
		g.Expect(helper.Patch(t.Context(), &m, patch.WithOwnedConditions{Conditions: []string{gate}})).To(Succeed())
	}
	s.expectReady(t)
	setGates()
	eventually(t, settleTimeout, func(g Gomega) {
		for _, m := range s.machines(g) {
			g.Expect(m.Spec.ReadinessGates).To(BeEmpty())
		}
	})
	s.expectReady(t)
}

// expectReady waits until all Machines are ready again.
func (s *story) expectReady(t *testing.T) {
	t.Helper()
	eventually(t, settleTimeout, func(g Gomega) {
		g.Expect(s.controlPlane(g).Status.ReadyReplicas).To(HaveValue(BeEquivalentTo(replicas)))
		g.Expect(s.remediation(g)).To(BeEmpty())
		expect(g, s.cluster(g), clusterv1.ClusterControlPlaneMachinesReadyCondition, metav1.ConditionTrue)
	})
}

func (s *story) outOfDate(t *testing.T) {
	g := NewWithT(t)
	before := s.uids(g)
	setVersion := func(version string) {
		s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Version = version })
	}
	const next = "v1.33.99"
	setVersion(next)
	eventually(t, settleTimeout, func(g Gomega) {
		for _, m := range s.machines(g) {
			expect(g, &m, clusterv1.MachineUpToDateCondition, metav1.ConditionFalse)
			g.Expect(conditions.GetMessage(&m, clusterv1.MachineUpToDateCondition)).
				To(Equal(fmt.Sprintf("* Version %s, %s required", sandbox.KubernetesVersion, next)))
		}
		expect(g, s.controlPlane(g), controlplanev1.RollingOutCondition, metav1.ConditionTrue)
		cluster := s.cluster(g)
		expect(g, cluster, clusterv1.ClusterRollingOutCondition, metav1.ConditionTrue)
		expect(g, cluster, clusterv1.ClusterControlPlaneMachinesUpToDateCondition, metav1.ConditionFalse)
	})
	setVersion(sandbox.KubernetesVersion)
	eventually(t, settleTimeout, func(g Gomega) {
		expect(g, s.controlPlane(g), controlplanev1.RollingOutCondition, metav1.ConditionFalse)
		expect(g, s.cluster(g), clusterv1.ClusterControlPlaneMachinesUpToDateCondition, metav1.ConditionTrue)
	})
	g.Expect(s.uids(g)).To(Equal(before))
}

func (s *story) adoption(t *testing.T) {
	g := NewWithT(t)
	before := s.uids(g)
	orphan := &s.machines(g)[0]
	s.update(g, orphan, func() { orphan.OwnerReferences = nil })
	eventually(t, settleTimeout, func(g Gomega) {
		s.get(g, orphan.Name, orphan)
		g.Expect(metav1.IsControlledBy(orphan, s.controlPlane(g))).To(BeTrue())
	})
	g.Expect(s.uids(g)).To(Equal(before))
}

func (s *story) paused(t *testing.T) {
	g := NewWithT(t)
	cluster := s.cluster(g)
	s.update(g, cluster, func() { cluster.Spec.Paused = ptr.To(true) })
	eventually(t, settleTimeout, func(g Gomega) { expect(g, s.controlPlane(g), clusterv1.PausedCondition, metav1.ConditionTrue) })
	// What the manager wrote before this may come into the audit log later than the condition could be read.
	paused := time.Now()
	s.change(g, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{ownLabel: "paused"}
	})
	consistently(t, func(g Gomega) {
		written := names(s.managerWritesSince(g, paused))
		g.Expect(written).To(Or(BeEmpty(), Equal([]string{s.install().Name})), "the condition Paused follows the generation")
		g.Expect(s.machines(g)[0].Labels).NotTo(HaveKey(ownLabel))
	})
	s.update(g, cluster, func() { cluster.Spec.Paused = nil })
	eventually(t, settleTimeout, func(g Gomega) {
		expect(g, s.controlPlane(g), clusterv1.PausedCondition, metav1.ConditionFalse)
		g.Expect(s.machines(g)[0].Labels).To(HaveKeyWithValue(ownLabel, "paused"))
	})
}

// managerWrites are the manager's successful writes in the namespace.
func (s *story) managerWrites(g Gomega) []*auditv1.Event {
	return s.writes(g, func(e *auditv1.Event) bool { return e.User.Username == s.world.ControlPlane.User })
}

// managerWritesSince are those that came after an instant, but for Events: they tell of what was before, and are sent in the background.
func (s *story) managerWritesSince(g Gomega, begin time.Time) []*auditv1.Event {
	return s.writes(g, func(e *auditv1.Event) bool {
		return e.User.Username == s.world.ControlPlane.User && e.RequestReceivedTimestamp.After(begin) && e.ObjectRef.Resource != "events"
	})
}
