// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
)

// TestPasses: a manager has something to do while an object was not looked at, or a pass waits or runs, of whichever controller; but for
// the one that never rests.
func TestPasses(t *testing.T) {
	const (
		types = "# TYPE controller_runtime_reconcile_total counter\n# TYPE workqueue_depth gauge\n" +
			"# TYPE controller_runtime_active_workers gauge\n"
		over    = `controller_runtime_reconcile_total{controller="openshiftassistedconfig",result="success"} `
		queued  = `workqueue_depth{controller="agent",name="agent",priority="0"} `
		running = `controller_runtime_active_workers{controller="agent"} `
		resting = `controller_runtime_active_workers{controller="clustercache"} 1` + "\n"
	)
	for name, tt := range map[string]struct{ text, left string }{
		"one not looked at": {over + "1\n" + queued + "0\n", "1 passes of openshiftassistedconfig are over, of 2"},
		"none looked at":    {queued + "0\n", "0 passes of openshiftassistedconfig are over, of 2"},
		"one waits":         {over + "2\n" + queued + "1\n", "workqueue_depth of agent is 1"},
		"one runs":          {over + "2\n" + queued + "0\n" + running + "1\n", "controller_runtime_active_workers of agent is 1"},
		"nothing to do":     {over + "2\n" + queued + "0\n" + running + "0\n" + resting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			metrics, err := scraped.Parse([]byte(types + tt.text))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(BootstrapPasses(2).left(metrics)).To(Equal(tt.left))
		})
	}
}
