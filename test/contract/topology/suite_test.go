// SPDX-License-Identifier: Apache-2.0

// Package topology checks, with the real topology controllers of Cluster API, what the shipped ClusterClass makes of clusters, and which
// versions Cluster API, the release and the Nodes have to agree on (docs/adr/0001-versions.md). All clusters are in one sandbox world.
package topology

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 3

	// plainVersion is what a user would guess, kubeletVersion what the kubelets of every cluster here report.
	plainVersion   = "v1.33.4"
	kubeletVersion = "v1.33.4+3b9f8b6"

	installTimeout = 3 * time.Minute
	upgradeTimeout = 6 * time.Minute
	settleTimeout  = time.Minute
)

var world *sandbox.World

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	world, err = sandbox.NewWorld(context.Background(), sandbox.WorldOptions{
		// Cluster API copies the templates of a ClusterClass, in an API version that this Metal3 converts.
		Metal3:   "v1beta2",
		Progress: os.Stderr, Speed: speed, KubeletVersion: func(types.NamespacedName) string { return kubeletVersion },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	world.Watch.OnChange(upgraded.Seeing(seeUpgrades))
	code := m.Run()
	if err := world.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// story is a cluster in a namespace of the same name, with its hosts and the ClusterClass.
type story struct {
	key   types.NamespacedName
	hosts int
}

func newStory(t *testing.T, name string, hosts int) story {
	t.Helper()
	g := NewWithT(t)
	g.Expect(world.CreateInputs(t.Context(), name, hosts)).To(Succeed())
	g.Expect(world.ApplyClass(t.Context(), name)).To(Succeed())
	return story{key: types.NamespacedName{Namespace: name, Name: name}, hosts: hosts}
}

// installSingleNode installs a control-plane host and a worker, which joins afterwards, in a story of its own.
func installSingleNode(t *testing.T, name, address string) story {
	t.Helper()
	s := newStory(t, name, 2)
	NewWithT(t).Expect(world.Client.Create(t.Context(), singleNode(t, s, kubeletVersion, address))).To(Succeed())
	s.await(t, installTimeout, "the cluster", world.Running(s.key, 2))
	s.await(t, settleTimeout, "the versions", s.versionsMatch(controlplanev1.VersionsMatchReason, ""))
	return s
}

// installHA installs three control-plane hosts and a worker from the ClusterClass, in a story of its own.
func installHA(t *testing.T, name, address string) (story, sandbox.ClusterRequest) {
	t.Helper()
	request := sandbox.ClusterRequest{
		Namespace: name, Name: name, Topology: sandbox.HA, Template: "topology", Workers: 1, Address: address, KubernetesVersion: kubeletVersion,
	}
	s := newStory(t, request.Namespace, request.Machines())
	NewWithT(t).Expect(world.ApplyCluster(t.Context(), request)).To(Succeed())
	s.await(t, installTimeout, "the cluster", world.Running(s.key, request.Machines()))
	s.await(t, settleTimeout, "the versions", s.versionsMatch(controlplanev1.VersionsMatchReason, ""))
	return s, request
}

// await waits until check finds nothing missing, and shows the cluster when it does not.
func (s story) await(t *testing.T, timeout time.Duration, what string, check sandbox.Check) {
	t.Helper()
	NewWithT(t).Expect(world.AwaitCluster(t.Context(), s.key, timeout, what, check)).To(Succeed())
}

// get reads the Cluster's object of a kind that has the given name, past every cache.
func (s story) get(t *testing.T, name string, object client.Object) {
	t.Helper()
	NewWithT(t).Expect(world.Client.Get(t.Context(), client.ObjectKey{Namespace: s.key.Namespace, Name: name}, object)).To(Succeed())
}

func (s story) cluster(t *testing.T) *clusterv1.Cluster {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	s.get(t, s.key.Name, cluster)
	return cluster
}

func (s story) controlPlane(t *testing.T) *controlplanev1.OpenshiftAssistedControlPlane {
	t.Helper()
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	s.get(t, s.cluster(t).Spec.ControlPlaneRef.Name, controlPlane)
	return controlPlane
}

// list reads the Cluster's objects of a kind, past every cache.
func (s story) list(t *testing.T, list client.ObjectList) {
	t.Helper()
	NewWithT(t).Expect(world.Client.List(t.Context(), list, client.InNamespace(s.key.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.key.Name})).To(Succeed())
}

// machines returns the control-plane Machines and the workers.
func (s story) machines(t *testing.T) (controlPlane, workers []*clusterv1.Machine) {
	t.Helper()
	list := &clusterv1.MachineList{}
	s.list(t, list)
	for i := range list.Items {
		if machine := &list.Items[i]; util.IsControlPlaneMachine(machine) {
			controlPlane = append(controlPlane, machine)
		} else {
			workers = append(workers, machine)
		}
	}
	return controlPlane, workers
}

// versionsMatch checks the condition VersionsMatch of the control plane.
func (s story) versionsMatch(reason, message string) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
		if err := world.Watch.Get(ctx, sandbox.InstallKey(s.key), controlPlane); err != nil {
			return "", err
		}
		condition := conditions.Get(controlPlane, controlplanev1.VersionsMatchCondition)
		if condition == nil || condition.Reason != reason || condition.Message != message {
			return fmt.Sprintf("VersionsMatch is %+v", condition), nil
		}
		return "", nil
	}
}

// delete deletes the Cluster and waits until it is gone and every host is available.
func (s story) delete(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(world.DeleteCluster(t.Context(), s.key, installTimeout)).To(Succeed())
	s.await(t, settleTimeout, "the hosts", world.HostsAvailable(s.key.Namespace, s.hosts))
}
