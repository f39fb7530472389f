// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
	"github.com/capi-openshift/agent-providers/test/monitoring"
	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// refusals are the reasons of HostRecognized for which Agents are refused, as the metric calls them.
var refusals = map[string]string{
	bootstrapv1.SeveralAgentsReason: "several_agents", bootstrapv1.SeveralHostsReason: "several_hosts",
	bootstrapv1.DuplicateSerialNumberReason: "duplicate_serial_number", bootstrapv1.AgentClaimedByOtherReason: "claimed_by_other",
}

// What is counted in both managers.
var (
	installsMetric = metrics.InstallsTotal.Name
	refusedMetric  = metrics.AgentsRefusedTotal.Name
	phaseMetric    = metrics.MachinePhaseSeconds.Name
)

// tally counts what happens to the clusters of a World: which of them get how far before they are deleted differs from run to run.
type tally struct{ *scraped.Tally }

func newTally(world *sandbox.World) tally {
	t := tally{scraped.NewTally()}
	world.Watch.OnChange(t.Seeing(t.see))
	return t
}

func (t tally) see(object client.Object) {
	switch o := object.(type) {
	case *controlplanev1.OpenshiftAssistedControlPlane:
		t.seeControlPlane(o)
	case *bootstrapv1.OpenshiftAssistedConfig:
		reason := conditions.GetReason(o, bootstrapv1.HostRecognizedCondition)
		// A reason that is not known for a moment is no news.
		if reason != bootstrapv1.ReadFailedReason && t.becomes(o, "refused", refusals[reason]) {
			t.Count(refusedMetric, refusals[reason])
		}
	case *assisted.Agent:
		noted := o.Annotations[bootstrapv1.RecognitionAnnotation] != ""
		if t.becomes(o, "noted", map[bool]string{true: "noted"}[noted]) {
			t.Count(refusedMetric, "not_recognised")
		}
	case *clusterv1.Machine:
		role := map[bool]string{true: "control_plane", false: "worker"}[util.IsControlPlaneMachine(o)]
		if o.DeletionTimestamp.IsZero() && t.becomes(o, "node", o.Status.NodeRef.Name) {
			t.Count(phaseMetric, "node", role)
		}
	}
}

// seeControlPlane sees the failure, the next attempt and the success of an installation.
func (t tally) seeControlPlane(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	topology := "highly_available"
	if ptr.Deref(cp.Spec.Replicas, 0) == 1 {
		topology = "single_node"
	}
	for _, milestone := range []struct {
		result, reason, now string
	}{
		{"failed", "host", map[bool]string{true: "failed"}[cp.Status.Install.Phase == controlplanev1.InstallPhaseFailed]},
		{"completed", "", cp.Annotations[controlplanev1.InstalledClusterAnnotation]},
		{"retried", "asked", laterAttempt(cp)},
	} {
		if t.becomes(cp, milestone.result, milestone.now) {
			t.Count(installsMetric, topology, milestone.result, milestone.reason)
		}
	}
}

// laterAttempt is the number of an attempt that is not the first.
func laterAttempt(cp *controlplanev1.OpenshiftAssistedControlPlane) string {
	if number := cp.Annotations[controlplanev1.InstallAttemptAnnotation]; number != "1" {
		return number
	}
	return ""
}

// becomes reports whether something of an object has become so that was empty before.
func (t tally) becomes(object client.Object, what, now string) bool {
	return t.Was(object, what, now) == "" && now != ""
}

// expectCounted waits until the managers have counted what was seen, and expects that the faults are in it which every run has: one
// installation that fails and is tried again, two strays, and a host with another MAC address.
func expectCounted(t *testing.T, seen tally, world *sandbox.World) {
	t.Helper()
	g, ctx := NewWithT(t), context.WithoutCancel(t.Context()) // All faults have ended.
	g.Eventually(func(g Gomega) {
		installs, refused, nodes := seen.Values(installsMetric), seen.Values(refusedMetric), seen.Values(phaseMetric)
		scrape, err := world.Scrape(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(scrape.ControlPlane.Values(installsMetric, "topology", "result", "reason")).To(Equal(installs))
		g.Expect(scrape.Bootstrap.Values(refusedMetric, "reason")).To(Equal(refused))
		joined := scrape.Bootstrap.Values(phaseMetric, "phase", "role")
		for _, role := range []string{"control_plane", "worker"} {
			g.Expect(joined["node,"+role]).To(Equal(nodes["node,"+role]), role)
			g.Expect(joined["ready,"+role]).To(BeNumerically("<=", nodes["node,"+role]), role)
		}
		g.Expect(monitoring.CheckServed(monitoring.StoryFaults, scrape.Bootstrap, scrape.ControlPlane)).To(Succeed())
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
	installs, refused := seen.Values(installsMetric), seen.Values(refusedMetric)
	t.Logf("installs %v, Agents refused %v, Nodes %v", installs, refused, seen.Values(phaseMetric))
	g.Expect(installs).To(HaveKeyWithValue("single_node,failed,host", 1.0))
	g.Expect(installs).To(HaveKeyWithValue("single_node,retried,asked", 1.0))
	g.Expect(refused).To(HaveKeyWithValue("not_recognised", 3.0))
}
