// SPDX-License-Identifier: Apache-2.0

// Package workers tells the life of the workers of an installed cluster: they come, go, fail and are rolled out, as Cluster API's own
// end-to-end tests do it with theirs.
package workers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 4

	installTimeout = 4 * time.Minute
	// joinTimeout is for one worker that leaves and one that joins.
	joinTimeout = 2 * time.Minute
	poll        = 200 * time.Millisecond

	// generation is a label of Nodes whose configs are made from the second template.
	generation = "example.com/generation"
)

// story is a single-node cluster with workers.
type story struct {
	*sandbox.World
	key     types.NamespacedName
	request sandbox.ClusterRequest
}

// TestContractWorkers goes on in every part where the one before it left the cluster. There is one host more than the cluster begins with.
func TestContractWorkers(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	g := NewWithT(t)
	world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Progress: t.Output(), Speed: speed})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(world.Stop()).To(Succeed()) }()
	s := &story{
		World:   world,
		request: sandbox.ClusterRequest{Namespace: "workers", Name: "demo", Topology: sandbox.SNO, Workers: 1, Address: "127.30.1.25"},
	}
	s.key = s.request.Key()
	g.Expect(world.CreateInputs(t.Context(), s.key.Namespace, s.request.Machines()+1)).To(Succeed())
	g.Expect(world.ApplyCluster(t.Context(), s.request)).To(Succeed())
	s.expectWorkers(t, installTimeout, 1)

	t.Run("E2E-25 another worker joins, and a worker leaves", func(t *testing.T) {
		s.scale(t, 2)
		s.expectWorkers(t, joinTimeout, 2)
		s.scale(t, 1)
		s.expectWorkers(t, joinTimeout, 1)
	})
	t.Run("E2E-25 CORE-30 a worker that a health check gave up is replaced", s.remediate)
	t.Run("E2E-25 a new template rolls the workers out", s.rollOut)
}

func (s *story) deployment(t *testing.T) *clusterv1.MachineDeployment {
	t.Helper()
	deployment := &clusterv1.MachineDeployment{}
	key := types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name + "-workers"}
	NewWithT(t).Expect(s.Client.Get(t.Context(), key, deployment)).To(Succeed())
	return deployment
}

// change patches an object as a user would.
func (s *story) change(t *testing.T, object client.Object, change func()) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	change()
	NewWithT(t).Expect(s.Client.Patch(t.Context(), object, client.MergeFrom(before))).To(Succeed())
}

func (s *story) scale(t *testing.T, replicas int32) {
	t.Helper()
	deployment := s.deployment(t)
	s.change(t, deployment, func() { deployment.Spec.Replicas = ptr.To(replicas) })
}

// expectWorkers waits until the cluster runs with as many workers, each on its own host, and every other host is free again.
func (s *story) expectWorkers(t *testing.T, timeout time.Duration, workers int) {
	t.Helper()
	g := NewWithT(t)
	machines := s.request.ControlPlaneReplicas() + workers
	g.Expect(s.AwaitCluster(t.Context(), s.key, timeout, fmt.Sprintf("%d workers", workers), s.Running(s.key, machines))).To(Succeed())
	agents, err := s.VerifyHosts(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(agents).To(HaveLen(machines))
}

// workers are the Machines of the cluster's MachineDeployment.
func (s *story) workers(t *testing.T, g Gomega) []clusterv1.Machine {
	t.Helper()
	machines, err := s.Machines(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(machines, func(m clusterv1.Machine) bool { return util.IsControlPlaneMachine(&m) })
}

// expectReplaced waits until the Machine is gone and another one runs in its place.
func (s *story) expectReplaced(t *testing.T, machine clusterv1.Machine) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		workers := s.workers(t, g)
		g.Expect(workers).To(HaveLen(1))
		g.Expect(workers[0].UID).NotTo(Equal(machine.UID))
	}).WithContext(t.Context()).WithTimeout(joinTimeout).WithPolling(poll).Should(Succeed())
	s.expectWorkers(t, joinTimeout, 1)
}

func (s *story) remediate(t *testing.T) {
	g := NewWithT(t)
	victim := s.workers(t, g)[0]
	g.Expect(s.Client.Create(t.Context(), &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: "workers"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: s.key.Name,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: s.deployment(t).Name}},
			// Real hosts need hours (CORE-31).
			Checks: clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](0)},
		},
	})).To(Succeed())
	s.change(t, &victim, func() { metav1.SetMetaDataAnnotation(&victim.ObjectMeta, clusterv1.RemediateMachineAnnotation, "") })
	s.expectReplaced(t, victim)
}

func (s *story) rollOut(t *testing.T) {
	g := NewWithT(t)
	old := s.workers(t, g)[0]
	template := &bootstrapv1.OpenshiftAssistedConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: "second"}}
	template.Spec.Template.Spec.NodeRegistration.Labels = []bootstrapv1.NodeLabel{{Key: generation, Value: ptr.To("2")}}
	g.Expect(s.Client.Create(t.Context(), template)).To(Succeed())
	deployment := s.deployment(t)
	s.change(t, deployment, func() { deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name = template.Name })
	s.expectReplaced(t, old)

	config, err := s.Workload.Config(sandbox.InstallKey(s.key))
	g.Expect(err).NotTo(HaveOccurred())
	installed, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{}
	g.Expect(installed.Get(t.Context(), types.NamespacedName{Name: s.workers(t, g)[0].Status.NodeRef.Name}, node)).To(Succeed())
	g.Expect(node.Labels).To(HaveKeyWithValue(generation, "2"))
}
