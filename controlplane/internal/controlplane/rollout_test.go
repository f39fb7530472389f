// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// renewTemplate asks for Machines of another infrastructure template.
func (w *world) renewTemplate() {
	w.t.Helper()
	w.templates++
	name := fmt.Sprintf("t%d", w.templates)
	template := infra("Metal3MachineTemplate")
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "t"}, template))
	renewed := &unstructured.Unstructured{Object: map[string]any{"spec": template.Object["spec"]}}
	renewed.SetGroupVersionKind(template.GroupVersionKind())
	renewed.SetNamespace(namespace)
	renewed.SetName(name)
	w.must(w.client.Create(context.Background(), renewed))
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.MachineTemplate.Spec.InfrastructureRef.Name = name
	})
}

// rollingUpdate makes the control plane replace outdated Machines by itself.
func (w *world) rollingUpdate(maxSurge int32) {
	w.t.Helper()
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Rollout.Strategy.Type = controlplanev1.RollingUpdateRollout
		s.Rollout.Strategy.RollingUpdate.MaxSurge = &maxSurge
	})
}

// rolledOut reports whether the cluster is whole, and every Machine is of the newest template and up to date.
func (w *world) rolledOut() bool {
	if !w.whole() {
		return false
	}
	if w.outdated() > 0 {
		return false
	}
	for _, m := range w.machines() {
		if !conditions.IsTrue(&m, clusterv1.MachineUpToDateCondition) {
			return false
		}
	}
	return conditions.IsFalse(w.controlPlane(), controlplanev1.RollingOutCondition)
}

// outdated counts the Machines that are of an older template than the newest.
func (w *world) outdated() int {
	newest, outdated := w.controlPlane().Spec.MachineTemplate.Spec.InfrastructureRef.Name, 0
	for _, o := range w.infraMachines() {
		if o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != newest {
			outdated++
		}
	}
	return outdated
}

// voters are the members that serve and vote.
func (w *world) voters() int {
	n := 0
	for _, m := range w.installed.model.Members() {
		if m.Healthy && !m.Learner {
			n++
		}
	}
	return n
}

// TestRollout: every Machine is replaced, one after the other, and etcd has never fewer members than the strategy allows.
func TestRollout(t *testing.T) {
	for _, replicas := range []int32{3, 5} {
		for _, maxSurge := range []int32{0, 1} {
			name := fmt.Sprintf("%d replicas, maxSurge %d", replicas, maxSurge)
			allowed := func(w *world) func() bool {
				return func() bool {
					g := NewWithT(w.t)
					g.Expect(w.voters()).To(BeNumerically(">=", replicas-1+maxSurge), w.etcdSummary)
					g.Expect(len(w.machines())).To(BeNumerically("<=", replicas+maxSurge), w.etcdSummary)
					return w.rolledOut()
				}
			}
			t.Run(name, func(t *testing.T) {
				w := livingWorld(t, replicas)
				w.rollingUpdate(maxSurge)
				w.renewTemplate()
				compareStory(t, w.settle(nil, allowed(w)))
			})
			inRandomOrder(t, name, 20, func(t *testing.T, order *rand.Rand) {
				w := livingWorld(t, replicas)
				w.rollingUpdate(maxSurge)
				w.renewTemplate()
				w.settle(order, allowed(w))
			})
		}
	}
}

// TestRolloutOnDelete: nothing is replaced that nobody has deleted or marked, unless its time has come.
func TestRolloutOnDelete(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	w.renewTemplate()
	for range 10 {
		w.live(nil)
	}
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-1", "cp-2"}))
	g.Expect(w.message(controlplanev1.RollingOutCondition)).To(Equal("3 of 3 Machines are not up to date\n" +
		"* Replaced when you delete them or annotate them with cluster.x-k8s.io/delete-machine, and not by themselves " +
		"(spec.rollout.strategy.type is OnDelete): cp-0, cp-1, cp-2"))

	m := w.machines()[1]
	m.Annotations[clusterv1.DeleteMachineAnnotation] = ""
	w.must(w.client.Update(context.Background(), &m))
	w.settle(nil, func() bool { return w.whole() && w.names()[1] == "cp-2" })
	for range 10 {
		w.live(nil)
	}
	g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-2", "cp-3"}))

	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Rollout.After = metav1.NewTime(w.now.Add(10 * time.Minute))
	})
	for range 5 {
		w.live(nil)
		g.Expect(w.names()).To(Equal([]string{"cp-0", "cp-2", "cp-3"}))
	}
	w.settle(nil, w.rolledOut)
	g.Expect(w.names()).To(Equal([]string{"cp-4", "cp-5", "cp-6"}))
}

// names are those of the Machines.
func (w *world) names() []string {
	w.t.Helper()
	var names []string
	for _, m := range w.machines() {
		names = append(names, m.Name)
	}
	return names
}

// TestOverlap: users change their minds, hosts die, and Machines are deleted while others are replaced. In the end the cluster is what is
// asked for, and etcd never loses its quorum by what was done.
func TestOverlap(t *testing.T) {
	inRandomOrder(t, "all of it", 50, func(t *testing.T, random *rand.Rand) {
		w := livingWorld(t, []int32{3, 4, 5}[random.Intn(3)])
		w.healthCheck = true
		w.rollingUpdate(int32(random.Intn(2)))
		for range 12 {
			w.disturb(random)
			for range random.Intn(8) {
				w.live(random)
			}
		}
		w.settle(random, w.rolledOut)
	})
}

// disturb does one of the things that happen to clusters. A host dies only when etcd has members to spare.
func (w *world) disturb(random *rand.Rand) {
	w.t.Helper()
	machines := w.machines()
	victim := machines[random.Intn(len(machines))]
	switch random.Intn(6) {
	case 0:
		replicas := []int32{3, 4, 5}[random.Intn(3)]
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = &replicas })
	case 1:
		w.renewTemplate()
	case 2:
		w.deleteMachine(victim.Name)
	case 3:
		w.rollingUpdate(int32(random.Intn(2)))
	case 4:
		if host := w.installed.hosts[victim.Name]; host != nil && host.Running && w.mayLoseOne() {
			w.hostDies(victim.Name)
			w.installed.model.Tick(w.now, w.installed.list()) // The next look sees it.
		}
	case 5:
		if host := w.installed.hosts[victim.Name]; host != nil && host.Node {
			host.Running, host.Ready = true, true // Somebody switches it on again.
		}
	}
}

// mayLoseOne reports whether etcd keeps its quorum when the host of any member dies.
func (w *world) mayLoseOne() bool {
	voting := 0
	for _, m := range w.installed.model.Members() {
		if !m.Learner {
			voting++
		}
	}
	return w.voters()-1 > voting/2
}
