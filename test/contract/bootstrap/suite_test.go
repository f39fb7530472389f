// SPDX-License-Identifier: Apache-2.0

// Package bootstrap holds the bootstrap provider to the rules of Cluster API's contract that show only in a living management cluster:
// a sandbox world with two installed clusters, and clusters without a control plane of which the tests take every step themselves.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// addresses are those of this package's clusters.
	addresses = "127.30.1."

	// speed makes an installation take some seconds of simulated time.
	speed = 4

	installTimeout = 4 * time.Minute
	// eventTimeout is far below the managers' resync period, so that nothing is awaited that has no event.
	eventTimeout = 2 * time.Minute
	// quietPeriod is how long nothing may happen.
	quietPeriod = 3 * time.Second
	poll        = 100 * time.Millisecond
)

// scene is a world with clusters.
type scene struct {
	*sandbox.World
	// always are the rules that hold at every moment.
	always *invariants
	// installed is a cluster with a worker that joined afterwards; doomed is one for a test to delete.
	installed, doomed types.NamespacedName
}

// shared is the world of all tests.
var shared *scene

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(run(m))
}

// run runs the tests in a world, and returns the exit code.
func run(m *testing.M) (code int) {
	var err error
	if shared, err = newScene(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "start the world:", err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the world:", err)
			code = 1
		}
	}()
	return m.Run()
}

func newScene(ctx context.Context) (*scene, error) {
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{
		Progress: os.Stderr, Speed: speed,
		Adjust: func(_ *localcontrolplane.ControlPlane, manager *localcontrolplane.ManagerSpec) {
			// Nobody competes for the Lease, and a restart would wait for it.
			manager.Args = append(manager.Args, "--sync-period=10h", "--leader-elect=false")
		},
	})
	if err != nil {
		return nil, err
	}
	s := &scene{
		World: world, always: watchInvariants(world),
		// With different names, because Cluster API core mixes up Nodes of one name (docs/troubleshooting.md).
		installed: types.NamespacedName{Namespace: "running", Name: "demo"}, doomed: types.NamespacedName{Namespace: "doomed", Name: "doomed"},
	}
	if err := s.install(ctx); err != nil {
		return nil, errors.Join(err, world.Stop())
	}
	return s, nil
}

// install brings both clusters up, side by side.
func (s *scene) install(ctx context.Context) error {
	requests := []sandbox.ClusterRequest{
		{Namespace: s.installed.Namespace, Name: s.installed.Name, Topology: sandbox.SNO, Workers: 1, Address: addresses + "5"},
		{Namespace: s.doomed.Namespace, Name: s.doomed.Name, Topology: sandbox.SNO, Address: addresses + "15"},
	}
	for _, request := range requests {
		if err := s.CreateInputs(ctx, request.Namespace, request.Machines()); err != nil {
			return err
		}
		if err := s.ApplyCluster(ctx, request); err != nil {
			return err
		}
	}
	for _, request := range requests {
		key := request.Key()
		if err := s.AwaitCluster(ctx, key, installTimeout, key.String(), s.Running(key, request.Machines())); err != nil {
			return err
		}
	}
	return nil
}

// get reads an object past every cache.
func (s *scene) get(ctx context.Context, g Gomega, object client.Object, namespace, name string) {
	g.Expect(s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)).To(Succeed())
}

// configs are the configs of a namespace.
func (s *scene) configs(ctx context.Context, g Gomega, namespace string) []bootstrapv1.OpenshiftAssistedConfig {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	g.Expect(s.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// change patches an object as a user would.
func (s *scene) change(t *testing.T, object client.Object, change func()) {
	t.Helper()
	NewWithT(t).Expect(s.Change(t.Context(), object, change)).To(Succeed())
}

// pauseCluster pauses or unpauses a Cluster.
func (s *scene) pauseCluster(t *testing.T, key types.NamespacedName, paused bool) {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	s.get(t.Context(), NewWithT(t), cluster, key.Namespace, key.Name)
	s.change(t, cluster, func() { cluster.Spec.Paused = ptr.To(paused) })
}

// eventually repeats a check until it passes.
func eventually(t *testing.T, check func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(check).WithContext(t.Context()).WithTimeout(eventTimeout).WithPolling(poll).Should(Succeed())
}

// consistently repeats a check that must never fail.
func consistently(t *testing.T, check func(g Gomega)) {
	t.Helper()
	NewWithT(t).Consistently(check).WithContext(t.Context()).WithTimeout(quietPeriod).WithPolling(poll).Should(Succeed())
}
