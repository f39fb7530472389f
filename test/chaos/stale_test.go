// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// once returns a chooser that kills a manager after the first write of each kind ("create machines").
func once(kinds ...string) func(Write) bool {
	left := map[string]bool{}
	for _, kind := range kinds {
		left[kind] = true
	}
	return func(w Write) bool {
		kill := left[w.String()]
		left[w.String()] = false
		return kill
	}
}

// TestStaleCache: a control plane manager that knows less than there is makes nothing twice and takes nothing for foreign (DESIGN D15).
func TestStaleCache(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var victim *Victim
	// At full speed the service rewrites its objects more often than the manager hears of them, and no decision about day 1 is ever up to
	// date.
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{Progress: t.Output(), Speed: 1,
		Adjust: func(cp *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
			if spec.Name != localcontrolplane.ControlPlaneManager().Name {
				return
			}
			// It dies with half of a Machine's objects made, and hears late of what it makes for the installation.
			victim = NewVictim(newClient(g, cp), t.TempDir(), once("create metal3machines", "create openshiftassistedconfigs"))
			victim.SlowWatches = []string{"clusterimagesets", "clusterdeployments", "agentclusterinstalls"}
			victim.Adjust(cp, spec)
		}})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(world.Stop()).To(Succeed()) }()
	go victim.Supervise(ctx, world.ControlPlane)

	var foreign atomic.Pointer[string]
	world.Watch.OnChange(func(o client.Object) {
		if cp, ok := o.(*controlplanev1.OpenshiftAssistedControlPlane); ok &&
			conditions.GetReason(cp, controlplanev1.InstalledCondition) == controlplanev1.NameConflictReason {
			foreign.Store(ptr.To(conditions.GetMessage(cp, controlplanev1.InstalledCondition)))
		}
	})
	request := sandbox.ClusterRequest{Namespace: "stale", Name: "demo", Topology: sandbox.SNO, Address: "127.10.61.5"}
	g.Expect(world.CreateInputs(ctx, request.Namespace, request.Machines())).To(Succeed())
	g.Expect(world.ApplyCluster(ctx, request)).To(Succeed())
	g.Expect(world.AwaitCluster(ctx, request.Key(), installTimeout, "the cluster", world.Running(request.Key(), request.Machines()))).
		To(Succeed())
	_, err = world.VerifyHosts(ctx, request.Key())
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(foreign.Load()).To(BeNil(), "it took what it had made itself for somebody else's")
	g.Expect(victim.Points()).To(HaveLen(2))
	machines, images := &clusterv1.MachineList{}, &hivev1.ClusterImageSetList{}
	g.Expect(world.Client.List(ctx, machines)).To(Succeed())
	g.Expect(machines.Items).To(HaveLen(1))
	g.Expect(world.Client.List(ctx, images)).To(Succeed())
	g.Expect(images.Items).To(HaveLen(1))
	g.Expect(world.DeleteCluster(ctx, request.Key(), deleteTimeout)).To(Succeed())

	stop()
	g.Expect(victim.Close()).To(Succeed())
}
