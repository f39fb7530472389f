// SPDX-License-Identifier: Apache-2.0

// Package e2e tells the stories of whole clusters in one sandbox world: a real API server, the real Cluster API core, both managers as
// processes with their shipped identities, and simulators of what needs metal.
package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/security"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 3

	installTimeout = 4 * time.Minute
	deleteTimeout  = 3 * time.Minute
	settleTimeout  = time.Minute
)

var world *sandbox.World

func TestContractScenarios(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	RegisterFailHandler(Fail)
	t.Run("E2E-20 E2E-27 CTL-20 clusters come and go, also without an API and with CRDs that come late", func(t *testing.T) {
		RunSpecs(t, "clusters in a sandbox world")
	})
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	// The world outlives the node that starts it. Its end fails when the race detector has found something in a manager.
	world, err = sandbox.NewWorld(context.WithoutCancel(ctx), sandbox.WorldOptions{
		Progress: GinkgoWriter, Speed: speed, Policies: true,
		Adjust: func(_ *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) { spec.Race = true },
	})
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	if world != nil {
		end(world)
	}
})

// enter makes a spec work in a world of its own until it ends.
func enter(w *sandbox.World) {
	shared := world
	world = w
	DeferCleanup(func() { world = shared })
}

// permissions is what the managers of all worlds may do, and what they did.
var permissions = security.Record{}

// end stops a world, and records what its managers did. The policies were in force, or else the managers were not held to them.
func end(w *sandbox.World) {
	GinkgoHelper()
	Expect(w.PoliciesInForce(context.Background())).To(Succeed())
	for _, manager := range []*localcontrolplane.Manager{w.Bootstrap, w.ControlPlane} {
		Expect(permissions.Add(context.Background(), w.Client, w.Management.AuditLog(), manager.Name(), manager.User)).To(Succeed())
	}
	Expect(w.Stop()).To(Succeed())
}

// A verb that a manager lacks shows when it is needed, one that it has for nothing only when all is done.
var _ = ReportAfterSuite("the managers' roles hold what the managers use, and nothing else (BOOT-7)", func(report Report) {
	missing, excess := permissions.Missing(), permissions.Excess()
	Expect(missing).To(BeEmpty(), "%s", strings.Join(missing, "\n"))
	if report.SuiteSucceeded && report.PreRunStats.SpecsThatWillRun == report.PreRunStats.TotalSpecs {
		Expect(excess).To(BeEmpty(), "%s", strings.Join(excess, "\n"))
	}
})

// scene is a cluster of a spec, with its namespace and what was there before it.
type scene struct {
	request sandbox.ClusterRequest
	hosts   int
}

// key is the Cluster's.
func (s scene) key() types.NamespacedName { return s.request.Key() }

// install names the ClusterDeployment and AgentClusterInstall of the cluster: they are called as its control plane is in the templates.
func (s scene) install() types.NamespacedName { return sandbox.InstallKey(s.key()) }

// newScene makes the inputs of a cluster: its namespace, pull secret and hosts. address is the third byte of its API's loopback address.
func newScene(ctx context.Context, namespace, name string, topology sandbox.Topology, workers, address int) scene {
	GinkgoHelper()
	s := scene{request: sandbox.ClusterRequest{
		Namespace: namespace, Name: name, Topology: topology, Workers: workers, Address: fmt.Sprintf("127.10.%d.5", address),
		HostNetworks: topology == sandbox.SNO && workers > 0,
	}}
	s.hosts = s.request.Machines()
	Expect(world.CreateInputsFor(ctx, s.request, s.hosts)).To(Succeed())
	return s
}

// await waits for what happens to the cluster.
func (s scene) await(ctx context.Context, timeout time.Duration, what string, check sandbox.Check) {
	GinkgoHelper()
	Expect(world.Watch.AwaitIn(ctx, s.request.Namespace, timeout, what, check)).To(Succeed())
}

// apply applies the cluster's template.
func (s scene) apply(ctx context.Context) {
	GinkgoHelper()
	Expect(world.ApplyCluster(ctx, s.request)).To(Succeed())
}

// expectRunning waits until the cluster is Available with all its Machines, and verifies which host is which.
func (s scene) expectRunning(ctx context.Context) {
	GinkgoHelper()
	check := world.Running(s.key(), s.request.Machines())
	Expect(world.AwaitCluster(ctx, s.key(), installTimeout, s.key().String(), check)).To(Succeed())
	_, err := world.VerifyHosts(ctx, s.key())
	Expect(err).NotTo(HaveOccurred())
}

// delete deletes the cluster and waits until nothing of it is left and every host is available.
func (s scene) delete(ctx context.Context) {
	GinkgoHelper()
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = s.request.Namespace, s.request.Name
	Expect(client.IgnoreNotFound(world.Client.Delete(ctx, cluster))).To(Succeed())
	s.await(ctx, deleteTimeout, "the deletion of "+s.key().String(), world.Gone(s.key()))
	s.await(ctx, settleTimeout, "the hosts", world.HostsAvailable(s.request.Namespace, s.hosts))
}
