// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
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
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	installTimeout = 8 * time.Minute
	deleteTimeout  = 4 * time.Minute

	// minPoints is how many different writes the managers must have died after.
	minPoints = 30
)

// TestContractCrashes installs and deletes a cluster while both managers are killed after every write that they make for the first time,
// and expects the same objects as from a clean run, none of them twice. The clean run is held to the steady state besides, and to a change
// of leaders that nobody notices; its cluster is deleted by the new ones.
func TestContractCrashes(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	// Besides the first create of every kind: finalizers, hooks, claims and approvals, media, and the hold.
	required := sets.New(
		"bootstrap: patch openshiftassistedconfigs", "bootstrap: patch machines", "bootstrap: patch agents", "bootstrap: patch metal3machines",
		"controlplane: patch openshiftassistedcontrolplanes", "controlplane: patch agentclusterinstalls",
	)
	t.Run("E2E-28 a manager dies after every write that is new", func(t *testing.T) {
		g := NewWithT(t)
		clean, got := install(t, false), install(t, true)
		g.Expect(got.objects).To(Equal(clean.objects), "the same objects as from a clean run, none twice")
		t.Logf("killed after %d different writes", len(got.points))
		g.Expect(len(got.points)).To(BeNumerically(">=", minPoints), "%v", sets.List(got.points))
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
	// objects are what exists once the cluster is Available, as "<kind> <name>", with generated names as a count.
	objects []string
	// points are the different writes ("<manager>: <verb> <resource> <name>") after which a manager was killed.
	points sets.Set[string]
	// pointKinds are the same as "<manager>: <verb> <resource>"; writeKinds are those of all writes of the run.
	pointKinds, writeKinds sets.Set[string]
}

// install runs a cluster from nothing to Available and back, with managers that die, or not, after every write that is new.
func install(t *testing.T, deadly bool) result {
	t.Helper()
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	res := result{points: sets.New[string](), pointKinds: sets.New[string](), writeKinds: sets.New[string]()}
	victims := map[string]*Victim{}
	choosers := map[string]*chooser{}
	specs := map[string]localcontrolplane.ManagerSpec{}
	world, err := sandbox.NewWorld(
		ctx,
		sandbox.WorldOptions{Speed: 4, Adjust: func(cp *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
			if !deadly {
				spec.Args = append(slices.Clone(spec.Args), shortLease...)
			}
			specs[spec.Name] = *spec
			choosers[spec.Name] = &chooser{deadly: deadly, seen: sets.New[string](), kinds: sets.New[string]()}
			victims[spec.Name] = NewVictim(newClient(g, cp), t.TempDir(), choosers[spec.Name].choose)
			victims[spec.Name].Adjust(cp, spec)
		}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(world.Stop()).To(Succeed()) }()
	go victims[world.Bootstrap.Name()].Supervise(ctx, world.Bootstrap)
	go victims[world.ControlPlane.Name()].Supervise(ctx, world.ControlPlane)

	var standbys []standby
	if !deadly { // Before the snapshot: the webhooks are the standbys' from now on.
		for _, leader := range []*localcontrolplane.Manager{world.Bootstrap, world.ControlPlane} {
			standbys = append(standbys, startStandby(ctx, g, world, leader, specs[leader.Name()]))
		}
	}

	request := crashRequest("127.10.7.5")
	g.Expect(world.CreateInputs(ctx, request.Namespace, hosts)).To(Succeed())
	before, err := sandbox.TakeSnapshot(ctx, world.Management.Admin())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(world.ApplyCluster(ctx, request)).To(Succeed())
	g.Expect(world.AwaitCluster(ctx, request.Key(), installTimeout, "the cluster", world.Running(request.Key(), request.Machines()))).
		To(Succeed())
	_, err = world.VerifyHosts(ctx, request.Key())
	g.Expect(err).NotTo(HaveOccurred())
	res.objects = objects(ctx, g, world.Client, request.Namespace)
	if !deadly {
		expectSteady(ctx, g, world, request)
		for _, s := range standbys {
			s.expectTakeover(ctx, g, world, request.Namespace)
		}
	}

	g.Expect(world.DeleteCluster(ctx, request.Key(), deleteTimeout)).To(Succeed())
	expectNothingLeft(ctx, g, world, before)

	stop()
	for name, victim := range victims {
		for _, write := range victim.Points() {
			res.points.Insert(name + ": " + write.String() + " " + write.Name)
			res.pointKinds.Insert(name + ": " + write.String())
		}
		g.Expect(victim.Close()).To(Succeed())
		for kind := range choosers[name].kinds {
			res.writeKinds.Insert(name + ": " + kind)
		}
	}
	return res
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

// chooser picks the writes after which a manager dies: those that it makes for the first time. A write that is made
// again after a crash, and status that changes as an installation goes on, is passed over, so that the manager gets on.
type chooser struct {
	deadly bool
	seen   sets.Set[string]
	kinds  sets.Set[string]
}

func (c *chooser) choose(w Write) bool {
	c.kinds.Insert(w.String())
	key := w.String() + " " + w.Name
	if !c.deadly || c.seen.Has(key) {
		return false
	}
	c.seen.Insert(key)
	return true
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

func describe(o client.Object) string {
	name := o.GetName()
	if _, _, generated := strings.Cut(name, "-workers-"); generated {
		name = "<worker>"
	}
	if _, isAgent := o.(*assisted.Agent); isAgent {
		name = "<host>" // Which of the hosts are free is up to Metal3.
	}
	if _, isSecret := o.(*corev1.Secret); isSecret {
		return fmt.Sprintf("%T %s of type %s", o, name, o.(*corev1.Secret).Type)
	}
	return fmt.Sprintf("%T %s", o, name)
}

func newClient(g *WithT, cp *localcontrolplane.ControlPlane) client.Client {
	c, err := client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}
