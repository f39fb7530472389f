// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestSmall fails when something is written where nothing has changed, when a host is not bound, and when what is counted grows faster than
// the hosts. Many clusters take minutes: make scale.
func TestSmall(t *testing.T) {
	g := NewWithT(t)
	ctrl.SetLogger(klog.Background())
	report, err := Run(t.Context(), Options{
		Profiles: []string{profileStorm, profileBurst}, Sizes: Sizes{Hosts: []int{8, 16, 32}},
		Window: time.Second, Out: t.ArtifactDir(), Output: os.Stderr, Progress: t.Output(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Growth).NotTo(BeEmpty())
}

// TestFairness fails when anything is written for a tenant with broken objects whose annotations change all the time, and when hosts of
// another tenant are not bound beside it. How long those wait is measured by make scale.
func TestFairness(t *testing.T) {
	g := NewWithT(t)
	report, err := Run(t.Context(), Options{
		Profiles: []string{profileFairness}, Sizes: Sizes{Hosts: []int{20}}, Busy: true, Out: t.ArtifactDir(), Output: os.Stderr,
		Progress: t.Output(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Results).To(HaveLen(2))
	g.Expect(report.Results[1].Times).To(HaveKey("inventory to claim p99, ratio"))
}
