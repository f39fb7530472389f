// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capi-openshift/agent-providers/internal/version"
)

// TestBuildInfo: whoever looks at metrics sees which version, of which commit, with which Go serves them.
func TestBuildInfo(t *testing.T) {
	want := fmt.Sprintf(`
# HELP openshift_assisted_build_info What the manager was built from and with; always 1.
# TYPE openshift_assisted_build_info gauge
openshift_assisted_build_info{go=%q,revision=%q,version=%q} 1
`, runtime.Version(), version.Revision(), version.Get())
	NewWithT(t).Expect(testutil.GatherAndCompare(metrics.Registry, strings.NewReader(want), BuildInfoMetric)).To(Succeed())
}
