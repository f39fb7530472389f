// SPDX-License-Identifier: Apache-2.0

// Package machines tells the life of the Machines of installed clusters: they come, go, fail and are rolled out, as Cluster API's own
// end-to-end tests do it with theirs, with the real Cluster API core and its MachineHealthChecks. Both clusters are in one sandbox world.
package machines

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 4

	installTimeout = 4 * time.Minute
	// joinTimeout is for one host that leaves and one that joins.
	joinTimeout = 3 * time.Minute
	poll        = 200 * time.Millisecond
)

var world *sandbox.World

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(run(m))
}

// run runs the tests in a world, and returns the exit code.
func run(m *testing.M) int {
	var err error
	if world, err = sandbox.NewWorld(context.Background(), sandbox.WorldOptions{Progress: os.Stderr, Speed: speed}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := world.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// story is a cluster. Every part of it goes on where the one before it left the cluster.
type story struct {
	key     types.NamespacedName
	request sandbox.ClusterRequest
	// of tells which Machines the story is about.
	of func(*clusterv1.Machine) bool
}

// begin applies a cluster, for which there is one host more than it begins with.
func begin(t *testing.T, request sandbox.ClusterRequest, of func(*clusterv1.Machine) bool) *story {
	t.Helper()
	g := NewWithT(t)
	g.Expect(world.CreateInputs(t.Context(), request.Namespace, request.Machines()+1)).To(Succeed())
	g.Expect(world.ApplyCluster(t.Context(), request)).To(Succeed())
	return &story{key: request.Key(), request: request, of: of}
}

// change edits an object as a user would.
func change(t *testing.T, object client.Object, change func()) {
	t.Helper()
	NewWithT(t).Expect(world.Change(t.Context(), object, change)).To(Succeed())
}

// annotate sets an empty annotation on a Machine.
func annotate(t *testing.T, machine *clusterv1.Machine, annotation string) {
	t.Helper()
	change(t, machine, func() { metav1.SetMetaDataAnnotation(&machine.ObjectMeta, annotation, "") })
}

// expectRunning waits until the cluster runs with as many Machines, and checks that each of them has its own host.
func (s *story) expectRunning(t *testing.T, timeout time.Duration, machines int, also ...sandbox.Check) {
	t.Helper()
	g := NewWithT(t)
	checks := append([]sandbox.Check{world.Running(s.key, machines)}, also...)
	g.Expect(world.AwaitCluster(t.Context(), s.key, timeout, fmt.Sprintf("%d Machines", machines), sandbox.All(checks...))).To(Succeed())
	agents, err := world.VerifyHosts(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(agents).To(HaveLen(machines))
}

// machines are those that the story is about, by age.
func (s *story) machines(t *testing.T, g Gomega) []clusterv1.Machine {
	t.Helper()
	machines, err := world.Machines(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	machines = slices.DeleteFunc(machines, func(m clusterv1.Machine) bool { return !s.of(&m) })
	slices.SortStableFunc(machines, func(a, b clusterv1.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return machines
}

// node reads a Node of the cluster.
func (s *story) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	NewWithT(t).Expect(s.installed(t).Get(t.Context(), types.NamespacedName{Name: name}, node)).To(Succeed())
	return node
}

// installed is a client of the cluster's own API.
func (s *story) installed(t *testing.T) client.Client {
	t.Helper()
	installed, err := world.Installed(s.key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return installed
}

// part is a part of a story, with a name for the test.
type part struct {
	name string
	tell func(*testing.T)
}

// tell runs the parts, until one fails: the next would wait in vain for what that one should have left.
func tell(t *testing.T, parts ...part) {
	t.Helper()
	for _, p := range parts {
		if !t.Run(p.name, p.tell) {
			return
		}
	}
}

// expectGone waits until the Machines are gone.
func (s *story) expectGone(t *testing.T, gone ...clusterv1.Machine) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		for _, m := range s.machines(t, g) {
			g.Expect(slices.ContainsFunc(gone, func(other clusterv1.Machine) bool { return other.UID == m.UID })).To(BeFalse(), m.Name)
		}
	}).WithContext(t.Context()).WithTimeout(time.Duration(len(gone)) * joinTimeout).WithPolling(poll).Should(Succeed())
}
