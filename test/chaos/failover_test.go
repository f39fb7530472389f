// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// shortLease lets a standby take over within half a minute: it waits for as long as the leader has said that its Lease is valid.
var shortLease = []string{"--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=15s", "--leader-elect-retry-period=2s"}

const (
	// takeover is how long a standby may take until it has the Lease of a leader that has died.
	takeover = time.Minute
	// afterTakeover is how long nothing may be written after that: longer than the first pass of a leader takes for each object.
	afterTakeover = 15 * time.Second
)

// standby is a second replica of a manager, which waits for its Lease.
type standby struct{ leader, replica *localcontrolplane.Manager }

// startStandby starts a second replica of a manager. spec is that of the first one.
func startStandby(
	ctx context.Context, g *WithT, world *sandbox.World, leader *localcontrolplane.Manager, spec localcontrolplane.ManagerSpec,
) standby {
	spec.Name += "-standby"
	replica, err := world.Management.StartManager(ctx, spec)
	g.Expect(err).NotTo(HaveOccurred())
	return standby{leader: leader, replica: replica}
}

// expectTakeover kills the leader, and expects that the standby gets its Lease and writes nothing for a cluster that has not changed.
func (s standby) expectTakeover(ctx context.Context, g *WithT, world *sandbox.World, namespace string) {
	before := s.holder(ctx, g, world.Client)
	written, err := s.writes(world, namespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).NotTo(BeEmpty(), "the audit log tells of the manager")

	g.Expect(s.leader.Kill9()).To(Succeed())
	g.Eventually(func() string { return s.holder(ctx, g, world.Client) }).WithContext(ctx).WithTimeout(takeover).WithPolling(time.Second).
		ShouldNot(Equal(before), "the standby of %s takes over", s.leader.Name())
	g.Consistently(func() ([]sandbox.Write, error) { return s.writes(world, namespace) }).WithContext(ctx).WithTimeout(afterTakeover).
		WithPolling(time.Second).Should(Equal(written), "the new leader of %s", s.leader.Name())
}

// writes are those of both replicas for the cluster, but for events: a new leader tells once more what it still leaves alone, such as
// requests for certificates that nobody approves.
func (s standby) writes(world *sandbox.World, namespace string) ([]sandbox.Write, error) {
	writes, err := sandbox.WritesFor(world.Management.AuditLog(), s.replica.User, namespace)
	return slices.DeleteFunc(writes, func(w sandbox.Write) bool { return w.Resource == "events" }), err
}

// holder is who has the manager's Lease.
func (s standby) holder(ctx context.Context, g *WithT, c client.Client) string {
	leases := &coordinationv1.LeaseList{}
	g.Expect(c.List(ctx, leases, client.InNamespace(s.replica.Namespace))).To(Succeed())
	g.Expect(leases.Items).To(HaveLen(1))
	g.Expect(leases.Items[0].Spec.HolderIdentity).NotTo(BeNil())
	return *leases.Items[0].Spec.HolderIdentity
}
