// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// longLease is one that no leader loses because the machine is busy: only a leader that has died has another one after it.
var longLease = []string{"--leader-elect-lease-duration=2h", "--leader-elect-renew-deadline=1h", "--leader-elect-retry-period=2s"}

const (
	// takeover is how long a standby may take until it has the Lease of a leader that has died.
	takeover = 2 * time.Minute
	// afterTakeover is how long nothing may be written once the new leader has looked at everything: by then it is connected to the installed
	// cluster, and has looked again.
	afterTakeover = 15 * time.Second
)

// standby is a second replica of a manager, which waits for its Lease, and what it looks at when it has it.
type standby struct {
	leader, replica *localcontrolplane.Manager
	passes          sandbox.Passes
}

// startStandby starts a second replica of a manager. spec is that of the first one.
func startStandby(
	ctx context.Context, g *WithT, world *sandbox.World, leader *localcontrolplane.Manager, spec localcontrolplane.ManagerSpec,
	passes sandbox.Passes,
) standby {
	spec.Name += "-standby"
	replica, err := world.Management.StartManager(ctx, spec)
	g.Expect(err).NotTo(HaveOccurred())
	return standby{leader: leader, replica: replica, passes: passes}
}

// expectTakeover kills the leader, and expects that the standby gets its Lease when that runs out, looks at everything, and writes nothing
// for a cluster that has not changed.
func (s standby) expectTakeover(ctx context.Context, g *WithT, world *sandbox.World, namespace string) {
	before := s.holder(ctx, g, world.Client)
	written, err := s.writes(world, namespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).NotTo(BeEmpty(), "the audit log tells of the manager")

	g.Expect(s.leader.Kill9()).To(Succeed())
	s.endLease(ctx, g, world.Client)
	g.Eventually(func() string { return s.holder(ctx, g, world.Client) }).WithContext(ctx).WithTimeout(takeover).WithPolling(time.Second).
		ShouldNot(Equal(before), "the standby of %s takes over", s.leader.Name())
	g.Expect(world.AwaitPasses(ctx, s.replica, s.passes)).To(Succeed())
	g.Consistently(func() ([]sandbox.Write, error) { return s.writes(world, namespace) }).WithContext(ctx).WithTimeout(afterTakeover).
		WithPolling(time.Second).Should(Equal(written), "the new leader of %s", s.leader.Name())
}

// writes are those of both replicas for the cluster, but for events: a new leader tells once more what it still leaves alone, such as
// requests for certificates that nobody approves.
func (s standby) writes(world *sandbox.World, namespace string) ([]sandbox.Write, error) {
	writes, err := sandbox.WritesFor(world.Management.AuditLog(), s.replica.User, namespace)
	return slices.DeleteFunc(writes, func(w sandbox.Write) bool { return w.Resource == "events" }), err
}

// endLease lets the Lease of a leader that has died run out within a second of the moment in which the standby sees it: a standby waits for
// as long as the Lease says.
func (s standby) endLease(ctx context.Context, g *WithT, c client.Client) {
	lease := s.lease(ctx, g, c)
	before := client.MergeFrom(lease.DeepCopy())
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	g.Expect(c.Patch(ctx, lease, before)).To(Succeed())
}

// holder is who has the manager's Lease.
func (s standby) holder(ctx context.Context, g *WithT, c client.Client) string {
	lease := s.lease(ctx, g, c)
	g.Expect(lease.Spec.HolderIdentity).NotTo(BeNil())
	return *lease.Spec.HolderIdentity
}

// lease is the manager's, which both replicas want.
func (s standby) lease(ctx context.Context, g *WithT, c client.Client) *coordinationv1.Lease {
	leases := &coordinationv1.LeaseList{}
	g.Expect(c.List(ctx, leases, client.InNamespace(s.replica.Namespace))).To(Succeed())
	g.Expect(leases.Items).To(HaveLen(1))
	return &leases.Items[0]
}
