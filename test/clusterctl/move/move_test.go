// SPDX-License-Identifier: Apache-2.0

// Package move moves an installed cluster between two management clusters with the real clusterctl, and proves that nothing is lost:
// neither an object nor a Node, and that a worker added afterwards joins (DESIGN D22).
package move

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/clusterctl"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

const (
	namespace = "demo"
	name      = "demo"
	// apiAddress is where the installed cluster's API listens.
	apiAddress = "127.30.3.5"

	// version is that of the release which both management clusters have.
	version = "v0.1.0"

	// speed makes an installation take some seconds of simulated time.
	speed = 3

	installTimeout = 4 * time.Minute
	settleTimeout  = 90 * time.Second
)

// story is a move, told in steps.
type story struct {
	*WithT
	t              *testing.T
	repository     *clusterctl.Repository
	source, target *sandbox.World
	request        sandbox.ClusterRequest

	inventory, statuses map[string]any
	boots               map[simassisted.HostKey]int
	nodes               map[string]types.UID
	// writes are those of the source's managers before the move.
	writes map[string]int
	// unsafe counts the moments in which the source's AgentClusterInstall was being deleted while Agents were bound to it.
	unsafe atomic.Int32
}

// installObjects is the key of ClusterDeployment and AgentClusterInstall: they are called as the control plane is in the templates.
func (s *story) installObjects() types.NamespacedName {
	return sandbox.InstallKey(s.request.Key())
}

func TestContractMove(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	ctx := t.Context()
	s := newStory(ctx, t)
	steps := []struct {
		name string
		do   func(context.Context)
	}{
		{"E2E-22 a cluster is installed on the source", s.install},
		{"CTL-45 clusterctl accepts the move: every Machine has a Node", s.move},
		{"CTL-40 CTL-41 everything that the cluster consists of has arrived", s.arrived},
		{"CTL-42 CTL-46 CTL-47 CP-52 BOOT-34 CORE-23 every status is rebuilt and the Cluster is Available", s.rebuilt},
		{"CTL-42 no installation began, no host was booted and no Node was lost", s.untouched},
		{"CTL-43 the source's managers wrote nothing to what was moved, and cleaned up behind it without harm", s.sourceClean},
		{"E2E-22 a worker that is added on the target joins as day 2", s.scaleUp},
		{"E2E-22 the cluster is deleted on the target until nothing is left", s.delete},
	}
	for _, step := range steps {
		// One step builds on the other: after a failure the rest says nothing.
		if !t.Run(step.name, func(t *testing.T) {
			s.t, s.WithT = t, NewWithT(t)
			step.do(ctx)
		}) {
			t.FailNow()
		}
	}
}

func newStory(ctx context.Context, t *testing.T) *story {
	t.Helper()
	s := &story{WithT: NewWithT(t), t: t, request: sandbox.ClusterRequest{
		Namespace: namespace, Name: name, Topology: sandbox.HA, Workers: 1, Address: apiAddress,
		Variables: map[string]string{"OPENSHIFT_MACHINE_NETWORK_CIDR": "127.0.0.0/8"},
	}}
	tools, err := localcontrolplane.NewTools(os.Stderr)
	s.Expect(err).NotTo(HaveOccurred())
	s.repository, err = clusterctl.NewRepository(ctx, tools, t.TempDir(), clusterctl.Release{Version: version, Tools: tools})
	s.Expect(err).NotTo(HaveOccurred())
	install := func(ctx context.Context, cp *localcontrolplane.ControlPlane) error {
		return s.repository.Init(ctx, cp, version)
	}
	for _, world := range []**sandbox.World{&s.source, &s.target} {
		w, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{Speed: speed, Progress: os.Stderr, Install: install, Beside: s.source})
		s.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { s.stop(t, w) })
		*world = w
	}
	return s
}

// stop ends a world. When the test has failed its logs are kept in the folder that LOGS names.
func (s *story) stop(t *testing.T, w *sandbox.World) {
	if dir := os.Getenv("LOGS"); dir != "" && t.Failed() {
		err := os.CopyFS(filepath.Join(dir, filepath.Base(w.Management.Dir())), os.DirFS(filepath.Join(w.Management.Dir(), "logs")))
		if err != nil {
			t.Log(err)
		}
	}
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
}

// await waits for a check on a world, and shows the cluster when it waits in vain.
func (s *story) await(ctx context.Context, w *sandbox.World, timeout time.Duration, what string, check sandbox.Check) {
	s.t.Helper()
	s.Expect(w.AwaitCluster(ctx, s.request.Key(), timeout, what, check)).To(Succeed())
}

func (s *story) install(ctx context.Context) {
	// One host is spare: for the worker that is added later.
	s.Expect(s.source.CreateInputs(ctx, namespace, s.request.Machines()+1)).To(Succeed())
	// The user's part of the move: the pull secret belongs to nobody (docs/guides/move.md).
	_, err := s.source.Kubectl(ctx, "label", "secret", sandbox.PullSecretName, "-n", namespace, clusterctlv1.ClusterctlMoveLabel+"=")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.source.ApplyCluster(ctx, s.request)).To(Succeed())
	s.await(ctx, s.source, installTimeout, "the installation", s.source.Running(s.request.Key(), s.request.Machines()))
	s.await(ctx, s.source, settleTimeout, "the MachineHealthChecks", s.healthChecked)
	_, err = s.source.VerifyHosts(ctx, s.request.Key())
	s.Expect(err).NotTo(HaveOccurred())
}

// healthChecked checks that a MachineHealthCheck has judged every Machine of the source. That is the last condition that a Machine gets, a
// moment after the Cluster is Available: without this wait, what is noted before the move may lack it.
func (s *story) healthChecked(ctx context.Context) (string, error) {
	machines, err := s.source.Machines(ctx, s.request.Key())
	if err != nil {
		return "", err
	}
	var missing []string
	for i := range machines {
		if !conditions.IsTrue(&machines[i], clusterv1.MachineHealthCheckSucceededCondition) {
			missing = append(missing, "Machine "+machines[i].Name+" is not "+clusterv1.MachineHealthCheckSucceededCondition)
		}
	}
	return strings.Join(missing, "\n"), nil
}

// move runs clusterctl move.
func (s *story) move(ctx context.Context) {
	s.settle(ctx)
	s.source.Watch.OnChange(s.watchDeletion)
	began := time.Now()
	_, err := s.repository.Clusterctl(ctx, s.source.Management, nil,
		"move", "--namespace", namespace, "--to-kubeconfig", s.target.Management.AdminKubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Logf("clusterctl move took %s", time.Since(began).Round(time.Second))
}

// settle waits until the source's managers have nothing to do, and notes what is there before the move: what they write later, the move has
// caused. A pass that is over may have woken another one, so that they are asked until nothing was written between two answers.
func (s *story) settle(ctx context.Context) {
	users := []string{s.source.Bootstrap.User, s.source.ControlPlane.User}
	s.Eventually(func(g Gomega) {
		g.Expect(s.source.AwaitPasses(ctx, s.source.Bootstrap, sandbox.BootstrapPasses(s.request.Machines()))).To(Succeed())
		g.Expect(s.source.AwaitPasses(ctx, s.source.ControlPlane, sandbox.ControlPlanePasses(1))).To(Succeed())
		last := s.writes
		var err error
		s.writes, err = written(s.source, users...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.writes).To(Equal(last))
	}).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
	var err error
	s.inventory, err = inventory(ctx, s.source)
	s.Expect(err).NotTo(HaveOccurred())
	s.statuses, err = statuses(ctx, s.source)
	s.Expect(err).NotTo(HaveOccurred())
	s.boots, s.nodes = s.source.Metal.Boots(), s.nodeUIDs(ctx)
	s.Expect(s.nodes).To(HaveLen(s.request.Machines()))
}

// watchDeletion notes when the source's AgentClusterInstall is deleted while hosts are bound to it: assisted-service would unbind them, and
// reboot Nodes of the running cluster.
func (s *story) watchDeletion(o client.Object) {
	install, ok := o.(*hiveext.AgentClusterInstall)
	if !ok || install.DeletionTimestamp.IsZero() {
		return
	}
	agents := &assisted.AgentList{}
	if err := s.source.Watch.List(context.Background(), agents, client.InNamespace(namespace)); err != nil {
		s.unsafe.Add(1)
	}
	for i := range agents.Items {
		if agents.Items[i].BoundTo(namespace, s.installObjects().Name) {
			s.unsafe.Add(1)
		}
	}
}

func (s *story) arrived(ctx context.Context) {
	after, err := inventory(ctx, s.target)
	s.Expect(err).NotTo(HaveOccurred())
	for object, want := range s.inventory {
		s.Expect(after).To(HaveKey(object))
		if strings.HasPrefix(object, "BareMetalHost ") {
			continue // baremetal-operator and CAPM3 go on with it, and a free host is inspected again.
		}
		s.Expect(after[object]).To(Equal(want), object)
	}
	for object := range after {
		s.Expect(s.inventory).To(HaveKey(object), "nothing is there twice or new")
	}
	left, err := inventory(ctx, s.source)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(left).To(BeEmpty(), "the source has nothing left of it")
}

func (s *story) rebuilt(ctx context.Context) {
	s.await(ctx, s.target, installTimeout, "the Cluster on the target", s.target.Running(s.request.Key(), s.request.Machines()))
	s.Eventually(func(g Gomega) {
		after, err := statuses(ctx, s.target)
		g.Expect(err).NotTo(HaveOccurred())
		for object, want := range s.statuses {
			g.Expect(after[object]).To(Equal(want), object)
		}
	}).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	s.Expect(s.target.Client.List(ctx, configs, client.InNamespace(namespace))).To(Succeed())
	for i := range configs.Items {
		c := &configs.Items[i]
		s.Expect(conditions.GetReason(c, bootstrapv1.HostRecognizedCondition)).To(Equal(bootstrapv1.NodeJoinedReason), c.Name)
		s.Expect(conditions.GetReason(c, bootstrapv1.DiscoveryImageReadyCondition)).To(Equal(bootstrapv1.DiscoveryImageNotNeededReason), c.Name)
	}
}

func (s *story) untouched(ctx context.Context) {
	deployment, install := &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}
	s.Expect(s.target.Client.Get(ctx, s.installObjects(), deployment)).To(Succeed())
	s.Expect(s.target.Client.Get(ctx, s.installObjects(), install)).To(Succeed())
	s.Expect(deployment.Spec.Installed).To(BeTrue())
	s.Expect(install.Spec.HoldInstallation).To(BeTrue())
	s.Expect(install.Status.DebugInfo.State).To(Equal(assisted.ClusterStateAddingHosts))
	s.Expect(s.source.Metal.Boots()).To(Equal(s.boots))
	s.Expect(s.nodeUIDs(ctx)).To(Equal(s.nodes))
	writes, err := written(s.target, s.target.Bootstrap.User, s.target.ControlPlane.User)
	s.Expect(err).NotTo(HaveOccurred())
	for _, forbidden := range []string{
		"create machines", "delete machines", "create infraenvs", "patch agents", "delete agents", "patch metal3machines", "patch baremetalhosts",
		"create openshiftassistedconfigs", "create metal3machines",
	} {
		s.Expect(writes).NotTo(HaveKey(forbidden))
	}
}

func (s *story) sourceClean(ctx context.Context) {
	s.Eventually(func(g Gomega) {
		expectNoInstallObjects(ctx, g, s.source)
	}).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
	s.Expect(s.unsafe.Load()).To(BeZero(), "an AgentClusterInstall must not be deleted while Agents are bound to it")
	writes, err := written(s.source, s.source.Bootstrap.User, s.source.ControlPlane.User)
	s.Expect(err).NotTo(HaveOccurred())
	allowed := []string{
		// The condition Paused.
		"patch openshiftassistedconfigs/status", "patch openshiftassistedcontrolplanes/status",
		// Afterwards: what was left behind.
		"delete clusterimagesets", "delete agentclusterinstalls", "delete clusterdeployments", "patch agents", "delete agents",
		"create events", "patch events",
	}
	s.Expect(since(s.writes, writes)).To(HaveEach(BeElementOf(allowed)))
	s.Expect(s.source.Metal.Boots()).To(Equal(s.boots))
	s.Expect(s.nodeUIDs(ctx)).To(Equal(s.nodes), "the installed cluster runs on")
}

func (s *story) scaleUp(ctx context.Context) {
	s.Expect(s.target.AddWorker(ctx, s.request.Key())).To(Succeed())
	s.request.Workers++
	s.await(ctx, s.target, installTimeout, "the new worker", s.target.Running(s.request.Key(), s.request.Machines()))

	agents := &assisted.AgentList{}
	s.Expect(s.target.Client.List(ctx, agents, client.InNamespace(namespace))).To(Succeed())
	s.Expect(agents.Items).To(HaveLen(1), "the hosts that were moved have none")
	s.Expect(s.target.VerifyAdded(ctx, s.request.Key(), agents.Items[0].Name)).To(Succeed())
	nodes := s.nodeUIDs(ctx)
	s.Expect(nodes).To(HaveLen(len(s.nodes) + 1))
	for node, uid := range s.nodes {
		s.Expect(nodes).To(HaveKeyWithValue(node, uid))
	}
	boots := s.source.Metal.Boots()
	for host, count := range s.boots {
		s.Expect(boots).To(HaveKeyWithValue(host, count))
	}
}

func (s *story) delete(ctx context.Context) {
	s.Expect(s.target.DeleteCluster(ctx, s.request.Key(), installTimeout)).To(Succeed())
	s.await(ctx, s.target, settleTimeout, "the hosts", s.target.HostsAvailable(namespace, s.request.Machines()))
	s.Eventually(func(g Gomega) {
		left, err := inventory(ctx, s.target)
		g.Expect(err).NotTo(HaveOccurred())
		for object := range left {
			bmc := strings.HasPrefix(object, "Secret ") && strings.HasSuffix(object, "-bmc")
			g.Expect(bmc || strings.HasPrefix(object, "BareMetalHost ") || object == "Secret "+sandbox.PullSecretName).
				To(BeTrue(), "%s is left", object)
		}
		expectNoInstallObjects(ctx, g, s.target)
	}).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
}

// expectNoInstallObjects checks that a management cluster has no object of hive and assisted-service.
func expectNoInstallObjects(ctx context.Context, g Gomega, w *sandbox.World) {
	kinds := "clusterdeployments.hive.openshift.io,agentclusterinstalls,clusterimagesets,infraenvs,agents.agent-install.openshift.io"
	out, err := w.Kubectl(ctx, "get", kinds, "-A", "-o", "name")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.TrimSpace(string(out))).To(BeEmpty())
}

// nodeUIDs are the Nodes of the installed cluster, by name, all of them Ready.
func (s *story) nodeUIDs(ctx context.Context) map[string]types.UID {
	s.t.Helper()
	workload, err := s.source.Installed(s.request.Key())
	s.Expect(err).NotTo(HaveOccurred())
	nodes := &corev1.NodeList{}
	s.Expect(workload.List(ctx, nodes)).To(Succeed())
	uids := map[string]types.UID{}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				s.Expect(c.Status).To(Equal(corev1.ConditionTrue), node.Name)
			}
		}
		uids[node.Name] = node.UID
	}
	return uids
}
