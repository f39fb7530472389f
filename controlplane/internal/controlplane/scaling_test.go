// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestScaleUpDuringTheInstallation: replicas grow while the installation runs, and the hosts join one after the other afterwards.
func TestScaleUpDuringTheInstallation(t *testing.T) {
	g := NewWithT(t)
	w := installing(t, 3, 0)
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(5)) })
	for range 3 {
		w.reconcile()
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("The installation has begun"))
	w.run(nil, func() bool {
		g.Expect(len(w.machines())).To(BeNumerically("<", 5), "one after the other")
		return len(w.machines()) == 4
	})
	g.Expect(w.initialized()).To(BeTrue())
	w.run(nil, func() bool { return len(w.machines()) == 5 })
}

// TestScaleUpBeforeTheStart: replicas that grow when the set of hosts is fixed open day 1 again.
func TestScaleUpBeforeTheStart(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.closeAndHold()
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(5)) })
	w.run(nil, w.available)
	set, _ := assisted.DayOneAgents(w.install())
	g.Expect(set).To(HaveLen(5))
}

// TestScaleDownBeforeThereIsAnInstallation: while assisted-service refuses the AgentClusterInstall, nothing has begun.
func TestScaleDownBeforeThereIsAnInstallation(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 5, 0)
	w.refuse = func(o client.Object) error {
		if o.GetObjectKind().GroupVersionKind().Kind == "AgentClusterInstall" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "AgentClusterInstall"}, o.GetName(), nil)
		}
		return nil
	}
	for range 3 {
		_ = w.try()
	}
	g.Expect(w.machines()).To(HaveLen(5))
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
	for range 3 {
		_ = w.try()
	}
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.reason(controlplanev1.ScalingDownCondition)).To(Equal(controlplanev1.NotScalingDownReason))
}

// TestWaitForWorkersBeginsAnew: neither the hold of a user nor other workers leave a wait that has ended before it began.
func TestWaitForWorkersBeginsAnew(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 1)
	w.unbootable["worker-0"] = true
	waitStarted := func() string { return w.install().Annotations[assisted.WorkerWaitStartedAnnotation] }
	w.run(nil, func() bool { return w.install() != nil && waitStarted() != "" })
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.HoldInstallation = new(true) })
	for range 2 {
		w.reconcile()
	}
	g.Expect(waitStarted()).To(BeEmpty())
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.HoldInstallation = nil })
	w.reconcile()
	g.Expect(waitStarted()).NotTo(BeEmpty())

	first := waitStarted()
	w.now = w.now.Add(time.Minute)
	workers := &clusterv1.MachineDeployment{}
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "md"}, workers))
	workers.Spec.Replicas = new(int32(2))
	w.must(w.client.Update(context.Background(), workers))
	for range 2 {
		w.reconcile()
	}
	g.Expect(waitStarted()).NotTo(Or(BeEmpty(), Equal(first)))
}

// TestReplacementOfALostMachine: a Machine went without its hook, and its member stayed. Nothing joins etcd while that counts, and it is
// removed when nobody accounts for it. No name is used twice.
func TestReplacementOfALostMachine(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	m := w.machines()[2]
	m.Finalizers = nil
	w.must(w.client.Update(context.Background(), &m))
	w.vanish(&m)
	for _, o := range []client.Object{infra("Metal3Machine"), &bootstrapv1.OpenshiftAssistedConfig{}} { // As garbage collection does.
		o.SetNamespace(namespace)
		o.SetName(m.Name)
		w.vanish(o)
	}
	for range 15 {
		w.live(nil)
	}
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("2 of 3 members are available, cp-2 is unhealthy"))
	g.Expect(w.machines()).To(HaveLen(2), "its Node may still come back")
	w.installed.refused = errors.New("etcd is busy")
	g.Expect(w.reconcile().RequeueAfter).To(Equal(membersRetryInterval), "no event tells that etcd can be asked again")
	w.installed.refused = nil
	g.Expect(w.reconcile().RequeueAfter).To(Equal(membersRetryInterval), "the member is due, and cannot go yet")
	w.installed.hosts["cp-2"].Node = false
	story := w.settle(nil, w.whole)
	g.Expect(w.installed.removed).To(Equal([]string{"cp-2"}))
	compareStory(t, story)
	g.Expect(w.machines()[2].Name).To(Equal("cp-3"))
}

// TestMachineAPICannotBeRead: a Machine that comes and one that goes wait for an answer, which no event tells.
func TestMachineAPICannotBeRead(t *testing.T) {
	g := NewWithT(t)
	w := livingWorld(t, 3)
	g.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", time.Hour))
	w.installed.machineAPI = errors.New("the API is busy")
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(5)) })
	g.Expect(w.reconcile().RequeueAfter).To(Equal(membersRetryInterval))
	g.Expect(w.message(controlplanev1.ScalingUpCondition)).To(ContainSubstring("the API is busy"))
	w.installed.machineAPI = nil
	w.settle(nil, func() bool { return len(w.machines()) == 5 })
}

// TestSurplusWaitsForNews: a Machine whose Node is not ready stays while the connection is new, and no event tells when it is not any more.
func TestSurplusWaitsForNews(t *testing.T) {
	for name, change := range map[string]func(*controlplanev1.OpenshiftAssistedControlPlaneSpec){
		"too many": func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) },
		"outdated": func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Rollout.Strategy.Type = controlplanev1.RollingUpdateRollout
			s.MachineTemplate.Spec.InfrastructureRef.Name = "other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := livingWorld(t, 5)
			w.changeSpec(change)
			w.probe(false)
			w.probe(true)
			for _, m := range w.machines() {
				set(&m, clusterv1.MachineNodeReadyCondition, false)
				w.must(w.client.Status().Update(t.Context(), &m))
			}
			w.now = w.now.Add(time.Second)
			g.Expect(w.reconcile().RequeueAfter).To(Equal(2*time.Minute - time.Second))
		})
	}
}
