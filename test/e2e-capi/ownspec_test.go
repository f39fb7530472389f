// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"cmp"
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"
	"sigs.k8s.io/cluster-api/util"
)

// ownSpec is a spec of this project in the place of one of Cluster API that is for kubeadm only. It has what those have: a namespace with
// the same inputs, a cluster of the same template, and the same dumps and clean-up.
type ownSpec struct {
	name string
	// management is the cluster that the Cluster is in.
	management    framework.ClusterProxy
	namespace     *corev1.Namespace
	cancelWatches context.CancelFunc
	resources     *clusterctl.ApplyClusterTemplateAndWaitResult
}

// newOwnSpec is called in a container of ginkgo: it makes the namespace before each spec, and removes it with all in it afterwards. The
// management cluster is that of the suite, unless another one is given.
func newOwnSpec(ctx context.Context, name string, management ...func() framework.ClusterProxy) *ownSpec {
	s := &ownSpec{name: name}
	BeforeEach(func() {
		s.management, s.resources = environment.management, &clusterctl.ApplyClusterTemplateAndWaitResult{}
		for _, other := range management {
			s.management = other()
		}
		s.namespace, s.cancelWatches = framework.SetupSpecNamespace(ctx, name, s.management, environment.artifacts, createInputs(ctx))
	})
	AfterEach(func() {
		if s.namespace == nil {
			return // The spec was skipped.
		}
		// A template that was refused left none.
		cluster := cmp.Or(s.resources.Cluster, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace.Name, Name: name}})
		framework.DumpSpecResourcesAndCleanup(ctx, name, s.management, environment.clusterctl, environment.artifacts, s.namespace,
			s.cancelWatches, cluster, environment.config.GetIntervals, *keepClusters)
	})
	return s
}

func (s *ownSpec) intervals(key string) []any { return environment.config.GetIntervals(s.name, key) }

// createCluster makes a cluster with one control-plane Machine, and waits until everything is there.
func (s *ownSpec) createCluster(ctx context.Context, workers int64) {
	GinkgoHelper()
	By("Creating a workload cluster")
	clusterctl.ApplyClusterTemplateAndWait(ctx, clusterctl.ApplyClusterTemplateAndWaitInput{
		ClusterProxy: s.management,
		ConfigCluster: clusterctl.ConfigClusterInput{
			LogFolder:            filepath.Join(environment.artifacts, "clusters", s.management.GetName()),
			ClusterctlConfigPath: environment.clusterctl, KubeconfigPath: s.management.GetKubeconfigPath(),
			InfrastructureProvider: clusterctl.DefaultInfrastructureProvider, Flavor: sno, Namespace: s.namespace.Name,
			ClusterName:              s.name + "-" + util.RandomString(6), //nolint:mnd // as the framework's specs do
			KubernetesVersion:        environment.config.MustGetVariable("KUBERNETES_VERSION"),
			ControlPlaneMachineCount: ptr.To[int64](1), WorkerMachineCount: ptr.To(workers),
		},
		ControlPlaneWaiters: waiters(), WaitForClusterIntervals: s.intervals("wait-cluster"),
		WaitForControlPlaneIntervals: s.intervals("wait-control-plane"), WaitForMachineDeployments: s.intervals("wait-worker-nodes"),
	}, s.resources)
	s.expectRunning(ctx)
}

// expectRunning waits until the Cluster is Available and all its Machines are Ready.
func (s *ownSpec) expectRunning(ctx context.Context) {
	GinkgoHelper()
	c, cluster := s.management.GetClient(), s.resources.Cluster
	By("Verify Cluster Available condition is true")
	framework.VerifyClusterAvailable(ctx, framework.VerifyClusterAvailableInput{Getter: c, Namespace: cluster.Namespace, Name: cluster.Name})
	By("Verify Machines Ready condition is true")
	framework.VerifyMachinesReady(ctx, framework.VerifyMachinesReadyInput{Lister: c, Namespace: cluster.Namespace, Name: cluster.Name})
}

// expectGrowing adds a worker, and expects that it changes nothing else of the servers before.
func (s *ownSpec) expectGrowing(ctx context.Context, before map[string]server, options ...func(*server)) {
	GinkgoHelper()
	By("Scaling the MachineDeployment")
	deployments := framework.GetMachineDeploymentsByCluster(ctx, framework.GetMachineDeploymentsByClusterInput{
		Lister: s.management.GetClient(), ClusterName: s.resources.Cluster.Name, Namespace: s.namespace.Name,
	})
	Expect(deployments).To(HaveLen(1))
	framework.ScaleAndWaitMachineDeployment(ctx, framework.ScaleAndWaitMachineDeploymentInput{
		ClusterProxy: s.management, Cluster: s.resources.Cluster, MachineDeployment: deployments[0],
		Replicas: ptr.Deref(deployments[0].Spec.Replicas, 0) + 1, WaitForMachineDeployments: s.intervals("wait-worker-nodes"),
	})
	s.expectRunning(ctx)
	after := s.servers(ctx, options...)
	Expect(after).To(HaveLen(len(before) + 1))
	for name, want := range before {
		Expect(after).To(HaveKeyWithValue(name, want))
	}
}

// workers are the Machines of the only MachineDeployment.
func (s *ownSpec) workers(ctx context.Context) []clusterv1.Machine {
	GinkgoHelper()
	Expect(s.resources.MachineDeployments).To(HaveLen(1))
	return framework.GetMachinesByMachineDeployments(ctx, framework.GetMachinesByMachineDeploymentsInput{
		Lister: s.management.GetClient(), ClusterName: s.resources.Cluster.Name, Namespace: s.namespace.Name,
		MachineDeployment: *s.resources.MachineDeployments[0],
	})
}

// server is a Machine with what would be another one if its host were installed anew.
type server struct {
	machine    types.UID
	providerID string
	node       types.UID
}

// servers returns those of the cluster by the names of the Machines. A Machine that moves to another management cluster gets another UID
// there; withoutMachines leaves it out.
func (s *ownSpec) servers(ctx context.Context, options ...func(*server)) map[string]server {
	GinkgoHelper()
	cluster := s.resources.Cluster
	machines := framework.GetMachinesByCluster(ctx, framework.GetMachinesByClusterInput{
		Lister: s.management.GetClient(), Namespace: cluster.Namespace, ClusterName: cluster.Name,
	})
	workload := s.management.GetWorkloadCluster(ctx, cluster.Namespace, cluster.Name).GetClient()
	servers := make(map[string]server, len(machines))
	for i := range machines {
		node := &corev1.Node{}
		Expect(workload.Get(ctx, client.ObjectKey{Name: machines[i].Status.NodeRef.Name}, node)).To(Succeed())
		one := server{machine: machines[i].UID, providerID: machines[i].Spec.ProviderID, node: node.UID}
		for _, option := range options {
			option(&one)
		}
		servers[machines[i].Name] = one
	}
	return servers
}

func withoutMachines(s *server) { s.machine = "" }
