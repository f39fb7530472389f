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
