// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// steadyPeriod is how long nothing may be written (acceptance of the steady state).
	steadyPeriod  = time.Minute
	settleTimeout = time.Minute
)

// expectSteady holds the managers of a clean run to the steady state (DESIGN D15): once the cluster is Available they write nothing but
// their Leases, while assisted-service rewrites its objects.
func expectSteady(ctx context.Context, g *WithT, world *sandbox.World, request sandbox.ClusterRequest) {
	// Requests for serving certificates that nobody approves are left, which are looked at again every minute.
	g.Expect(world.VerifyServingCertificates(ctx, request.Key(), settleTimeout)).To(Succeed())

	var before []string
	g.Eventually(func() bool {
		last := before
		before = writesOf(g, world)
		return slices.Equal(before, last)
	}).WithContext(ctx).WithTimeout(settleTimeout).WithPolling(steadyPeriod/6).Should(BeTrue(), "the last conditions settle")
	g.Expect(before).NotTo(BeEmpty(), "the audit log tells of both managers")
	versions := resourceVersions(ctx, g, world.Client, request.Namespace)
	g.Consistently(func() []string { return writesOf(g, world) }).WithContext(ctx).WithTimeout(steadyPeriod).WithPolling(steadyPeriod / 6).
		Should(Equal(before))
	g.Expect(resourceVersions(ctx, g, world.Client, request.Namespace)).NotTo(Equal(versions), "the simulator has rewritten Agents meanwhile")
}

// writesOf lists the writes of the managers, but for their Leases and the reviews of whoever reads their diagnostics.
func writesOf(g *WithT, world *sandbox.World) []string {
	var lines []string
	for _, user := range []string{world.Bootstrap.User, world.ControlPlane.User} {
		writes, err := sandbox.Writes(world.Management.AuditLog(), user)
		g.Expect(err).NotTo(HaveOccurred())
		for _, w := range writes {
			lines = append(lines, fmt.Sprintf("%s: %+v", user, w))
		}
	}
	return lines
}

// resourceVersions are those of all Agents of a namespace.
func resourceVersions(ctx context.Context, g *WithT, c client.Client, namespace string) []string {
	agents := &assisted.AgentList{}
	g.Expect(c.List(ctx, agents, client.InNamespace(namespace))).To(Succeed())
	var versions []string
	for i := range agents.Items {
		versions = append(versions, agents.Items[i].ResourceVersion)
	}
	return versions
}
