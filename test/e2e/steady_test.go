// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// steadyPeriod is how long nothing may be written (acceptance of the steady state).
const steadyPeriod = time.Minute

// writesOf lists the writes of the managers, but for their Leases and the reviews of whoever reads their diagnostics, and for Events of other
// namespaces: a recorder ends the series of an event that was repeated six minutes after the last time, and other stories' clusters had some.
func writesOf(namespace string, users ...string) []string {
	GinkgoHelper()
	var lines []string
	elsewhere := func(event *auditv1.Event) bool {
		return event.ObjectRef.Resource == "events" && event.ObjectRef.Namespace != namespace
	}
	for _, user := range users {
		writes, err := sandbox.Writes(world.Management.AuditLog(), user, elsewhere)
		Expect(err).NotTo(HaveOccurred())
		for _, w := range writes {
			lines = append(lines, fmt.Sprintf("%s: %+v", user, w))
		}
	}
	return lines
}

// resourceVersions are the versions of all Agents of a namespace: they change when the service rewrites them.
func resourceVersions(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	agents := &assisted.AgentList{}
	Expect(world.Client.List(ctx, agents, client.InNamespace(namespace))).To(Succeed())
	var versions []string
	for i := range agents.Items {
		versions = append(versions, agents.Items[i].ResourceVersion)
	}
	return versions
}

var _ = Describe("steady state (DESIGN D15)", func() {
	It("writes nothing while assisted-service rewrites its objects", func(ctx SpecContext) {
		s := newScene(ctx, "steady", "demo", sandbox.HA, 1, 31)
		s.apply(ctx)
		s.expectRunning(ctx)
		By("leaving requests for serving certificates that nobody approves, which are looked at again every minute")
		Expect(world.VerifyServingCertificates(ctx, s.key(), settleTimeout)).To(Succeed())
		managers := []string{world.Bootstrap.User, world.ControlPlane.User}
		By("waiting for the last conditions to settle")
		var before []string
		Eventually(func() bool {
			last := before
			before = writesOf(s.request.Namespace, managers...)
			return slices.Equal(before, last)
		}).WithContext(ctx).WithTimeout(settleTimeout).WithPolling(steadyPeriod / 6).Should(BeTrue())
		versions := resourceVersions(ctx, s.request.Namespace)
		Consistently(func() []string { return writesOf(s.request.Namespace, managers...) }).WithContext(ctx).WithTimeout(steadyPeriod).WithPolling(steadyPeriod / 6).
			Should(Equal(before))
		Expect(resourceVersions(ctx, s.request.Namespace)).NotTo(Equal(versions), "the simulator has rewritten Agents meanwhile")
		s.delete(ctx)
	})
})
