// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	simmetal3 "github.com/capi-openshift/agent-providers/test/sim/metal3"
)

// TestPeriodsAreInProportion: whoever looks more often than another in reality does so in the simulation, by as much.
func TestPeriodsAreInProportion(t *testing.T) {
	g := NewWithT(t)
	const scale = 100
	service, metal := assisted.DefaultDurations(), simmetal3.DefaultDurations()
	g.Expect(service.AgentPoll * scale).To(Equal(time.Minute))
	g.Expect(service.Monitor * scale).To(BeNumerically("~", 9*time.Second, time.Second))
	g.Expect(metal.HostRetry * scale).To(Equal(30 * time.Second))
	g.Expect(metal.NodePoll * scale).To(Equal(30 * time.Second))
}
