// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/golden"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	installTimeout = 8 * time.Minute
	deleteTimeout  = 4 * time.Minute

	// minPoints is how many different writes that are new the managers must have died after.
	minPoints = 30
	// draws is after how many other writes they die, for each of three parts of the story: 30 times in all.
	draws = 10
)

// TestContractCrashes installs a cluster, adds a worker, replaces a host and deletes the cluster, while both managers are killed: in the
// installation and the deletion after every write that they make for the first time, and besides, until the deletion, after writes that a
// seed chooses, of which another run chooses others. It expects the same objects as from a clean run, none of them twice. The clean run is
// held to the steady state besides, and to a change of leaders that nobody notices; its cluster is deleted by the new ones.
func TestContractCrashes(t *testing.T) {
	t.Parallel()
	ctrl.SetLogger(klog.Background())
	// Besides the first create of every kind: finalizers, hooks, claims and approvals, media, and the hold.
	required := sets.New(
		"bootstrap: patch openshiftassistedconfigs", "bootstrap: patch machines", "bootstrap: patch agents", "bootstrap: patch metal3machines",
		"controlplane: patch openshiftassistedcontrolplanes", "controlplane: patch agentclusterinstalls",
	)
	t.Run("E2E-28 a manager dies after every write that is new", func(t *testing.T) {
		g := NewWithT(t)
		chosen, err := seed()
		g.Expect(err).NotTo(HaveOccurred())
		t.Logf("%s=%d chooses after which other writes managers die", seedVariable, chosen)
		clean, got := tell(t, false, chosen), tell(t, true, chosen)
		golden.Compare(t, "objects.txt", strings.Join(clean.objects, "\n")+"\n")
		g.Expect(got.objects).To(Equal(clean.objects), "the same objects as from a clean run, none twice")
		g.Expect(got.grown).To(Equal(withAnotherWorker(clean.objects)), "the same objects with one worker more, none twice")
		t.Logf("killed after %d different writes", len(got.points))
		g.Expect(len(got.points)).To(BeNumerically(">=", minPoints), "%v", sets.List(got.points))
		g.Expect(got.drawn).To(HaveLen(3*draws), "writes that the seed has chosen")
		for kind := range clean.writeKinds {
			if strings.Contains(kind, ": create ") {
				required.Insert(kind)
			}
		}
		g.Expect(sets.List(required.Difference(got.pointKinds))).To(BeEmpty(), "writes after which no manager died")
	})
}

// result is what a run left behind and what happened in it.
type result struct {
	// objects are what exists once the cluster is Available, as "<kind> <name>", with names that are not foreseen as a count; grown are those
	// after a worker was added and a host was replaced.
	objects, grown []string
	// points are the different writes ("<manager>: <verb> <resource> <name>") after which a manager was killed, drawn those of them that the
	// seed has chosen.
	points sets.Set[string]
	drawn  []string
	// pointKinds are the same as "<manager>: <verb> <resource>"; writeKinds are those of all writes of the run.
	pointKinds, writeKinds sets.Set[string]
}

// crashes is a run of the story.
type crashes struct {
	*WithT
	t       *testing.T
	ctx     context.Context
	deadly  bool
	seed    uint64
	world   *sandbox.World
	request sandbox.ClusterRequest
	chooser *chooser
	victims map[string]*Victim
	specs   map[string]localcontrolplane.ManagerSpec
	result
}

// tell runs a cluster from nothing to Available and back, with managers that die, or not.
func tell(t *testing.T, deadly bool, chosen uint64) result {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &crashes{
		WithT: NewWithT(t), t: t, ctx: ctx, deadly: deadly, seed: chosen, request: crashRequest("127.10.7.5"), chooser: newChooser(chosen),
		victims: map[string]*Victim{}, specs: map[string]localcontrolplane.ManagerSpec{},
	}
	c.chooser.enter(true, draws)
	var err error
	c.world, err = sandbox.NewWorld(ctx, sandbox.WorldOptions{Speed: 4, Adjust: c.adjust})
	c.Expect(err).NotTo(HaveOccurred())
	defer func() { c.Expect(c.world.Stop()).To(Succeed()) }()
	go c.victims[c.world.Bootstrap.Name()].Supervise(ctx, c.world.Bootstrap)
	go c.victims[c.world.ControlPlane.Name()].Supervise(ctx, c.world.ControlPlane)
	standbys := c.startStandbys() // Before the snapshot: the webhooks are the standbys' from now on.

	c.Expect(c.world.CreateInputs(ctx, c.request.Namespace, hosts)).To(Succeed())
	before, err := sandbox.TakeSnapshot(ctx, c.world.Management.Admin())
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.world.ApplyCluster(ctx, c.request)).To(Succeed())
	c.running()
	c.objects = objects(ctx, c.WithT, c.world.Client, c.request.Namespace)
	if deadly {
		c.grow()
	} else {
		expectSteady(ctx, c.WithT, c.world, c.request)
		for _, s := range standbys {
			s.expectTakeover(ctx, c.WithT, c.world, c.request.Namespace)
		}
	}
	c.chooser.enter(true, 0)
	c.Expect(c.world.DeleteCluster(ctx, c.request.Key(), deleteTimeout)).To(Succeed())
	expectNothingLeft(ctx, c.WithT, c.world, before)
	stop()
	c.count()
	return c.result
}

// adjust makes a manager die when the chooser says so.
func (c *crashes) adjust(cp *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
	if !c.deadly {
		spec.Args = append(slices.Clone(spec.Args), longLease...)
	}
	name := spec.Name
	c.specs[name] = *spec
	c.victims[name] = NewVictim(newClient(c.WithT, cp), c.t.TempDir(), func(w Write) bool { return c.chooser.choose(name, w) && c.deadly })
	c.victims[name].Adjust(cp, spec)
}

func (c *crashes) startStandbys() []standby {
	if c.deadly {
		return nil
	}
	start := func(leader *localcontrolplane.Manager, passes sandbox.Passes) standby {
		return startStandby(c.ctx, c.WithT, c.world, leader, c.specs[leader.Name()], passes)
	}
	return []standby{
		start(c.world.Bootstrap, sandbox.BootstrapPasses(c.request.Machines())),
		start(c.world.ControlPlane, sandbox.ControlPlanePasses(1)),
	}
}

// running waits until the cluster is Available with all of its Machines, each on its host.
func (c *crashes) running() {
	c.t.Helper()
	key := c.request.Key()
	c.Expect(c.world.AwaitCluster(c.ctx, key, installTimeout, "the cluster", c.world.Running(key, c.request.Machines()))).To(Succeed())
	_, err := c.world.VerifyHosts(c.ctx, key)
	c.Expect(err).NotTo(HaveOccurred())
}

// grow adds a worker, and replaces the host of a control-plane Machine or of a worker, which the seed chooses. Managers die after the
// writes that the seed chooses.
func (c *crashes) grow() {
	c.chooser.enter(false, draws)
	c.Expect(c.world.AddWorker(c.ctx, c.request.Key())).To(Succeed())
	c.request.Workers++
	c.running()

	c.chooser.enter(false, draws)
	machines, err := c.world.Machines(c.ctx, c.request.Key())
	c.Expect(err).NotTo(HaveOccurred())
	victim := &machines[c.chooser.hash("victim")%uint64(len(machines))]
	c.t.Logf("replacing Machine %s", victim.Name)
	c.Expect(c.world.Client.Delete(c.ctx, victim)).To(Succeed())
	gone := func(ctx context.Context) (string, error) {
		uids, err := c.world.MachineUIDs(ctx, c.request.Key())
		if uids[victim.Name] == victim.UID {
			return "it is still there", err
		}
		return "", err
	}
	c.Expect(c.world.AwaitCluster(c.ctx, c.request.Key(), installTimeout, "the Machine to be gone", gone)).To(Succeed())
	c.running()
	c.grown = objects(c.ctx, c.WithT, c.world.Client, c.request.Namespace)
}

// count ends the victims, and counts after what they have died.
func (c *crashes) count() {
	c.points, c.pointKinds, c.writeKinds, c.drawn = sets.New[string](), sets.New[string](), c.chooser.kinds, c.chooser.drawn
	for name, victim := range c.victims {
		for _, write := range victim.Points() {
			c.points.Insert(name + ": " + write.String() + " " + write.Name)
			c.pointKinds.Insert(name + ": " + write.String())
		}
		c.Expect(victim.Close()).To(Succeed())
	}
}

// hosts is how many there are: one more than the cluster begins with.
const hosts = 5

// crashRequest is the cluster that is installed here, with an address of its own.
func crashRequest(address string) sandbox.ClusterRequest {
	return sandbox.ClusterRequest{Namespace: "chaos", Name: "demo", Topology: sandbox.HA, Workers: 1, Address: address}
}

// expectNothingLeft waits until the garbage collector has caught up.
func expectNothingLeft(ctx context.Context, g *WithT, world *sandbox.World, before *sandbox.Snapshot) {
	g.Eventually(func() error {
		now, err := sandbox.TakeSnapshot(ctx, world.Management.Admin())
		if err != nil {
			return err
		}
		return before.Compare(now)
	}).WithContext(ctx).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
}

// kinds are what the managers and Cluster API make for a cluster.
var kinds = []client.ObjectList{
	&clusterv1.MachineList{}, &bootstrapv1.OpenshiftAssistedConfigList{}, &controlplanev1.OpenshiftAssistedControlPlaneList{},
	&assisted.InfraEnvList{}, &assisted.AgentList{}, &hivev1.ClusterDeploymentList{}, &hiveext.AgentClusterInstallList{},
	&hivev1.ClusterImageSetList{}, &corev1.SecretList{},
}

// objects lists what exists, sorted. Names that Cluster API generates for workers are counted.
func objects(ctx context.Context, g *WithT, c client.Client, namespace string) []string {
	counts := map[string]int{}
	for _, kind := range kinds {
		list := kind.DeepCopyObject().(client.ObjectList)
		g.Expect(c.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			counts[describe(o.(client.Object))]++
			return nil
		})).To(Succeed())
	}
	var lines []string
	for name, count := range counts {
		lines = append(lines, fmt.Sprintf("%s: %d", name, count))
	}
	sort.Strings(lines)
	return lines
}

// describe is the kind of an object and its name, but for what is not foreseen: which of the hosts are free is up to Metal3, and Machines
// are replaced.
func describe(o client.Object) string {
	name := numbered.ReplaceAllString(generic(o.GetName()), "$1<n>")
	if _, isAgent := o.(*assisted.Agent); isAgent {
		name = "<host>"
	}
	if _, isSecret := o.(*corev1.Secret); isSecret {
		return fmt.Sprintf("%T %s of type %s", o, name, o.(*corev1.Secret).Type)
	}
	return fmt.Sprintf("%T %s", o, name)
}

// numbered finds the numbers of control-plane Machines.
var numbered = regexp.MustCompile(`(-control-plane-)\d+$`)

// withAnotherWorker are the objects of a cluster that has one worker, and those of its second one: all that is there once for each of them,
// and an Agent.
func withAnotherWorker(lines []string) []string {
	var more []string
	for _, line := range lines {
		if strings.Contains(line, "<worker>") {
			line = strings.ReplaceAll(line, ": 1", ": 2")
		}
		if strings.Contains(line, "<host>") {
			line = strings.ReplaceAll(line, ": 4", ": 5")
		}
		more = append(more, line)
	}
	return more
}

func newClient(g *WithT, cp *localcontrolplane.ControlPlane) client.Client {
	c, err := client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}
