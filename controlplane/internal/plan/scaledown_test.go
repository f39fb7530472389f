// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// surplusCandidate is a Machine whose Node is ready, which is changed.
func surplusCandidate(name string, age int, changes ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{}
	m.Name, m.CreationTimestamp = name, metav1.NewTime(time.Date(2026, 1, 1, 0, -age, 0, 0, time.UTC))
	says(clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)(m)
	for _, change := range changes {
		change(m)
	}
	return m
}

// says sets a condition of a Machine.
func says(condition string, status metav1.ConditionStatus) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		conditions.Set(m, metav1.Condition{Type: condition, Status: status, Reason: "Test"})
	}
}

func TestContractScaleDownChoice(t *testing.T) {
	marked := func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""} }
	outdated := func(m *clusterv1.Machine) { m.Spec.Version = "old" }
	unhealthy := says(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse)
	unready := says(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown)
	deleted := func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	in := func(domain string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
	}
	for name, tc := range map[string]struct {
		machines []*clusterv1.Machine
		want     string
	}{
		"none": {},
		"KCP-7 marked and outdated before marked": {
			[]*clusterv1.Machine{surplusCandidate("a", 9, marked), surplusCandidate("b", 1, marked, outdated)}, "b",
		},
		"KCP-7 marked before outdated and unhealthy": {
			[]*clusterv1.Machine{surplusCandidate("a", 9, outdated, unhealthy), surplusCandidate("b", 1, marked)}, "b",
		},
		"KCP-7 outdated and unhealthy before outdated": {
			[]*clusterv1.Machine{surplusCandidate("a", 9, outdated), surplusCandidate("b", 1, outdated, unhealthy)}, "b",
		},
		"KCP-7 outdated before the oldest": {
			[]*clusterv1.Machine{surplusCandidate("a", 9), surplusCandidate("b", 1, outdated)}, "b",
		},
		"KCP-7 in the failure domain with most Machines, the oldest": {
			[]*clusterv1.Machine{
				surplusCandidate("a", 9, in("x")), surplusCandidate("b", 1, in("y")), surplusCandidate("c", 2, in("y")),
			}, "c",
		},
		"one whose Node is not ready before the failure domain with most Machines": {
			[]*clusterv1.Machine{
				surplusCandidate("a", 1, in("x"), unready), surplusCandidate("b", 2, in("y")), surplusCandidate("c", 3, in("y")),
			}, "a",
		},
		"of equals the first by name": {[]*clusterv1.Machine{surplusCandidate("b", 1), surplusCandidate("a", 1)}, "a"},
		"none that is being deleted":  {[]*clusterv1.Machine{surplusCandidate("a", 9, deleted), surplusCandidate("b", 1)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			surplus := plan.Surplus(collections.FromMachines(tc.machines...), func(m *clusterv1.Machine) bool { return m.Spec.Version == "old" })
			if tc.want == "" {
				g.Expect(surplus).To(BeNil())
				return
			}
			g.Expect(surplus.Name).To(Equal(tc.want))
		})
	}
}

// TestSurplusWithoutNode: a Machine that has no Node yet goes first, unless a user marked another or it takes the place of an outdated one.
func TestSurplusWithoutNode(t *testing.T) {
	const blocked = ""
	for name, tc := range map[string]struct {
		change func(*view.View)
		// want is the Machine that goes; blocked when one with a Node would go, which waits for the other.
		want string
	}{
		"before outdated ones": {want: "cp-3"},
		"not before one that a user marked": {want: blocked, change: func(v *view.View) {
			v.Machines.Owned["cp-1"].Annotations[clusterv1.DeleteMachineAnnotation] = ""
		}},
		"not when it takes the place of an outdated one": {want: blocked, change: func(v *view.View) { rolling(v, 1) }},
		"when outdated ones go before another comes":     {want: "cp-3", change: func(v *view.View) { rolling(v, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := currentView(4)
			v.ControlPlane.Spec.Replicas = new(int32(3))
			v.Machines.Owned["cp-3"].Status.NodeRef.Name = ""
			says(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown)(v.Machines.Owned["cp-3"])
			v.Workload.Etcd.MembersAvailable.Message = "3 members are available"
			answering(v)
			outdate(v, "cp-0", "cp-1", "cp-2")
			if tc.change != nil {
				tc.change(v)
			}
			d := plan.DecideMachines(v, nil, false)
			if tc.want == blocked {
				g.Expect(d.Surplus).To(BeEmpty())
				g.Expect(d.SurplusBlockers).To(ContainElement(ContainSubstring("Machine cp-3 has no Node yet")))
				return
			}
			g.Expect(d.Surplus).To(HaveExactElements(HaveField("Name", tc.want)), "%v", d.SurplusBlockers)
		})
	}
}

// TestDeadSurplusBesideADrain: the drain of another Machine may never end before the dead host of which there is one too many is gone.
func TestDeadSurplusBesideADrain(t *testing.T) {
	g := NewWithT(t)
	v := currentView(5)
	v.ControlPlane.Spec.Replicas = new(int32(3))
	answering(v)
	drain(v, "cp-0")
	g.Expect(plan.DecideMachines(v, nil, false).Surplus).To(BeEmpty(), "all hosts run")
	notReady(v, "cp-1", 30*time.Minute)
	d := plan.DecideMachines(v, nil, false)
	g.Expect(d.Surplus).To(HaveExactElements(HaveField("Name", "cp-1")), "%v", d.SurplusBlockers)
}

// TestDeadSurplusDuringAnUpdate: the update waits for a dead host of which there is one too many, and a Machine that waits to be drained
// waits for the update.
func TestDeadSurplusDuringAnUpdate(t *testing.T) {
	g := NewWithT(t)
	decide := func(since time.Duration) plan.MachinesDecision {
		v := currentView(5)
		v.ControlPlane.Spec.Replicas = new(int32(3))
		answering(v)
		updating(v)
		awaitDrain(v, "cp-0")
		notReady(v, "cp-1", since)
		return plan.DecideMachines(v, nil, false)
	}
	d := decide(30 * time.Minute)
	g.Expect(d.Surplus).To(HaveExactElements(HaveField("Name", "cp-1")), "%v", d.SurplusBlockers)
	g.Expect(decide(29*time.Minute).Surplus).To(BeEmpty(), "it may be restarting")
}
