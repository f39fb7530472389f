// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/monitoring"
)

// expectCounted waits until the manager counts as many members of etcd, all of which serve, and exactly the given replacements more than
// when it was looked at before. Somebody who deletes a Machine, or marks one to leave, replaces nothing. No other story of this world
// replaces a host of a control plane, and its clusters have members of their own.
func (s hostsStory) expectCounted(t *testing.T, members float64, more map[string]float64) {
	t.Helper()
	want := maps.Clone(s.replaced)
	for series, number := range more {
		want[series] += number
	}
	NewWithT(t).Eventually(func(g Gomega) {
		list := &controlplanev1.OpenshiftAssistedControlPlaneList{}
		g.Expect(world.Client.List(t.Context(), list)).To(Succeed())
		healthy := members
		for i := range list.Items {
			if cp := &list.Items[i]; cp.Namespace != s.key.Namespace {
				healthy += float64(ptr.Deref(cp.Status.Etcd.HealthyMembers, 0))
			}
		}
		scrape, err := world.Scrape(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(scrape.ControlPlane.Values("openshift_assisted_etcd_members", "state")).To(Equal(map[string]float64{"healthy": healthy}))
		g.Expect(scrape.ControlPlane.Values("openshift_assisted_replacements_total", "cause", "result")).To(Equal(want))
		g.Expect(monitoring.CheckServed(monitoring.StoryMachines, scrape.Bootstrap, scrape.ControlPlane)).To(Succeed())
	}).WithContext(t.Context()).WithTimeout(followTimeout).WithPolling(time.Second).Should(Succeed())
	maps.Copy(s.replaced, want)
}
