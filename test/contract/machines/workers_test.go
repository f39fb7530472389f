// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// generation is a label of Nodes whose configs are made from the second template.
const generation = "example.com/generation"

// workersStory is a single-node cluster with workers.
type workersStory struct{ *story }

func TestContractWorkers(t *testing.T) {
	t.Parallel()
	request := sandbox.ClusterRequest{Namespace: "workers", Name: "demo", Topology: sandbox.SNO, Workers: 1, Address: "127.30.1.25"}
	s := workersStory{begin(t, request, func(m *clusterv1.Machine) bool { return !util.IsControlPlaneMachine(m) })}
	s.expectWorkers(t, installTimeout, 1)

	tell(t,
		part{"E2E-25 another worker joins", func(t *testing.T) { s.scaleTo(t, 2) }},
		part{"Nodes are upgraded in place, and their Machines and MachineSet follow (DESIGN D33)", s.followUpgrade},
		part{"E2E-25 a worker leaves", func(t *testing.T) { s.scaleTo(t, 1) }},
		part{"E2E-25 CORE-30 a worker that a health check gave up is replaced", s.remediate},
		part{"E2E-25 a new template rolls the workers out, where that is asked for", s.rollOut},
		part{"then a new version does so too, though the Node runs it (DESIGN D33)", s.rollOutVersion},
	)
}

func (s workersStory) deployment(t *testing.T) *clusterv1.MachineDeployment {
	t.Helper()
	deployment := &clusterv1.MachineDeployment{}
	key := types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name + "-workers"}
	NewWithT(t).Expect(world.Client.Get(t.Context(), key, deployment)).To(Succeed())
	return deployment
}

func (s workersStory) scaleTo(t *testing.T, replicas int32) {
	t.Helper()
	deployment := s.deployment(t)
	change(t, deployment, func() { deployment.Spec.Replicas = ptr.To(replicas) })
	s.expectWorkers(t, joinTimeout, int(replicas))
}

func (s workersStory) expectWorkers(t *testing.T, timeout time.Duration, workers int) {
	t.Helper()
	s.expectRunning(t, timeout, s.request.ControlPlaneReplicas()+workers)
}

// expectReplaced waits until the Machine is gone and another one runs in its place.
func (s workersStory) expectReplaced(t *testing.T, machine clusterv1.Machine) {
	t.Helper()
	s.expectGone(t, machine)
	s.expectWorkers(t, joinTimeout, 1)
}

func (s workersStory) remediate(t *testing.T) {
	g := NewWithT(t)
	victim := s.machines(t, g)[0]
	g.Expect(world.Client.Create(t.Context(), &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: "workers"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: s.key.Name,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: s.deployment(t).Name}},
			// Real hosts need hours (CORE-31).
			Checks: clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](0)},
		},
	})).To(Succeed())
	annotate(t, &victim, clusterv1.RemediateMachineAnnotation)
	s.expectReplaced(t, victim)
}

func (s workersStory) rollOut(t *testing.T) {
	g := NewWithT(t)
	old := s.machines(t, g)[0]
	template := &bootstrapv1.OpenshiftAssistedConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: "second"}}
	template.Spec.Template.Spec.NodeRegistration.Labels = []bootstrapv1.NodeLabel{{Key: generation, Value: ptr.To("2")}}
	g.Expect(world.Client.Create(t.Context(), template)).To(Succeed())
	deployment := s.deployment(t)
	change(t, deployment, func() {
		deployment.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
		deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name = template.Name
	})
	s.expectReplaced(t, old)

	g.Expect(s.node(t, s.machines(t, g)[0].Status.NodeRef.Name).Labels).To(HaveKeyWithValue(generation, "2"))
}
