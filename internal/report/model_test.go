// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// onlyLine returns the Line of the only Machine.
func onlyLine(g *WithT, r *Report) *Line {
	g.Expect(r.Details).To(HaveLen(1))
	return r.Details[0].Line
}

// ends are when the phases of a Line ended, since start.
func ends(l *Line) map[Phase]time.Duration {
	out := map[Phase]time.Duration{}
	for _, segment := range l.Segments {
		out[segment.Phase] = segment.To.Sub(start)
	}
	return out
}

// TestMilestonesOfObjects: each milestone is read from the objects; the begin of an installation is in an Event alone.
func TestMilestonesOfObjects(t *testing.T) {
	g := NewWithT(t)
	in := oneMachine()
	in.History = nil
	want := map[Phase]time.Duration{}
	end := 5 * time.Second
	for i, d := range usual {
		end += d
		want[phases[i]] = end
	}
	delete(want, Installing)
	g.Expect(ends(onlyLine(g, New(in)))).To(Equal(want))

	started := warning(corev1.ObjectReference{UID: in.ControlPlane.UID}, controlplanev1.EventInstallationStarted, "", 15*time.Minute)
	started.Type = corev1.EventTypeNormal
	in.Events = []corev1.Event{started}
	want[Installing] = 15 * time.Minute
	g.Expect(ends(onlyLine(g, New(in)))).To(Equal(want))
}

// TestMilestonesThatWerePassedTwice: what was seen by a watcher, or told by an Event, is earlier than the last transition of a condition.
func TestMilestonesThatWerePassedTwice(t *testing.T) {
	g := NewWithT(t)
	in := oneMachine()
	in.Configs[0].Status.Conditions[1] = condition(bootstrapv1.HostRecognizedCondition, "True", "Recognized", "", 30*time.Minute)
	g.Expect(ends(onlyLine(g, New(in)))[Recognised]).To(Equal(30 * time.Minute))
	claimed := warning(corev1.ObjectReference{UID: in.Configs[0].UID}, bootstrapv1.EventAgentClaimed, "", 9*time.Minute)
	in.Events = []corev1.Event{claimed}
	g.Expect(ends(onlyLine(g, New(in)))[Recognised]).To(Equal(9 * time.Minute))
	in.History.Machines[0].Passed[Recognised] = start.Add(8 * time.Minute)
	g.Expect(ends(onlyLine(g, New(in)))[Recognised]).To(Equal(8 * time.Minute))
}

// TestMovedMachine: its objects are younger than what they tell, so no time is known; but it is ready.
func TestMovedMachine(t *testing.T) {
	g := NewWithT(t)
	in := oneMachine()
	in.History = nil
	in.Machines[0].CreationTimestamp = at(2 * time.Hour)
	moved := onlyLine(g, New(in))
	g.Expect(moved.Segments).To(BeEmpty())
	g.Expect(moved.Next).To(BeEmpty())
	g.Expect(moved.state(in.Now)).To(Equal("ready"))
}

func TestCounts(t *testing.T) {
	g := NewWithT(t)
	r := New(sixMachines())
	g.Expect([]int{r.Machines, r.Done, r.Waiting, r.Faulty, r.Gone}).To(Equal([]int{6, 0, 6, 2, 0}))
	g.Expect(r.Compact).To(BeFalse())
	in := manyMachines(200)
	in.History.Machines = append(in.History.Machines, PastMachine{UID: "other", Name: "big-gone-0", Created: start.Add(time.Minute)})
	r = New(in)
	g.Expect([]int{r.Machines, r.Done, r.Waiting, r.Faulty, r.Gone}).To(Equal([]int{201, 195, 5, 5, 1}))
	g.Expect(r.Compact).To(BeTrue())
	g.Expect(r.Waves).To(HaveLen(2))
	g.Expect(r.Summary()).To(Equal("The cluster is not Available; 195 of 200 Machines are ready, 5 wait, 5 report faults."))
}

// summaries are faults in a line each.
func summaries(groups []FaultGroup) []string {
	out := []string{}
	for _, group := range groups {
		for _, fault := range group.Faults {
			out = append(out, strings.Join([]string{fault.Kind, fault.Name, "of", fault.Machine, fault.What, fault.Reason}, " "))
		}
	}
	return out
}

func TestFaults(t *testing.T) {
	g := NewWithT(t)
	r := New(sixMachines())
	g.Expect(summaries(r.Open)).To(ConsistOf(
		"Agent agent-demo-workers-x7k2p-9bn5c of demo-workers-x7k2p-9bn5c check has-min-memory fails",
		"OpenshiftAssistedConfig demo-workers-x7k2p-4xq8r of demo-workers-x7k2p-4xq8r HostRecognized HostNeverRegistered",
	))
	g.Expect(summaries(r.Past)).To(ConsistOf(
		"OpenshiftAssistedConfig demo-control-plane-1 of demo-control-plane-1 HostHealthy HostError",
		"OpenshiftAssistedConfig demo-workers-x7k2p-4xq8r of demo-workers-x7k2p-4xq8r event HostRebooted",
	))
}

// TestMarks: a condition tells since when it is False and not since when for this reason, which only a watcher knows.
func TestMarks(t *testing.T) {
	g := NewWithT(t)
	in := oneMachine()
	fail(in, "demo-control-plane-0", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentDisconnectedReason, "silent", 5*time.Second)
	r := New(in)
	g.Expect(onlyLine(g, r).Faults).To(HaveLen(1))
	g.Expect(onlyLine(g, r).Marks).To(BeEmpty())
	g.Expect(render(g, in)).To(ContainSubstring("False since &#43;5s"))
	in.History.Faults = []PastFault{{
		Kind: kindConfig, Name: "demo-control-plane-0", Condition: bootstrapv1.AgentInstalledCondition,
		Reason: bootstrapv1.AgentDisconnectedReason, From: start.Add(20 * time.Minute), To: in.Now, Count: 3,
	}}
	r = New(in)
	g.Expect(r.Past).To(BeEmpty())
	g.Expect(onlyLine(g, r).Marks).To(HaveLen(1))
	g.Expect(onlyLine(g, r).Marks[0].From).To(Equal(start.Add(20 * time.Minute)))
	g.Expect(onlyLine(g, r).Marks[0].Count).To(Equal(3))
}

// TestFaultsOfOthers: Agents and Events of other clusters are left out, and so are the checks of a host that is installed.
func TestFaultsOfOthers(t *testing.T) {
	g := NewWithT(t)
	in := oneMachine()
	in.Agents[0].Status.ValidationsInfo = common.ValidationsStatus{"hardware": {{ID: "a", Status: "failure"}}}
	for _, name := range []string{"stray", "foreign"} {
		agent := assisted.Agent{}
		agent.Name, agent.UID = name, types.UID("agent-"+name)
		agent.Labels = map[string]string{assisted.InfraEnvLabel: name}
		agent.Annotations = map[string]string{bootstrapv1.RecognitionAnnotation: "it matches no BareMetalHost"}
		in.Agents = append(in.Agents, agent)
	}
	in.InfraEnvs = []assisted.InfraEnv{{}, {}}
	in.InfraEnvs[0].Name, in.InfraEnvs[0].Labels = "stray", map[string]string{bootstrapv1.InfraEnvClusterLabel: "demo"}
	in.InfraEnvs[1].Name, in.InfraEnvs[1].Labels = "foreign", map[string]string{bootstrapv1.InfraEnvClusterLabel: "other"}
	in.Events = []corev1.Event{
		warning(corev1.ObjectReference{Kind: kindMachine, Name: "other", UID: "other"}, "FailedOther", "", time.Minute),
		warning(corev1.ObjectReference{Kind: kindCluster, Name: "demo", UID: "cluster"}, "FailedOurs", "", time.Minute),
	}
	r := New(in)
	g.Expect(summaries(r.Open)).To(ConsistOf("Agent stray of  HostRecognized AgentNotRecognized"))
	g.Expect(summaries(r.Past)).To(ConsistOf("Cluster demo of  event FailedOurs"))
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		kind, condition string
		status          metav1.ConditionStatus
		reason          string
		want            Verdict
	}{
		{kindConfig, bootstrapv1.HostRecognizedCondition, "True", "Recognized", Good},
		{kindConfig, bootstrapv1.HostRecognizedCondition, "False", bootstrapv1.WaitingForAgentReason, Waits},
		{kindConfig, bootstrapv1.HostRecognizedCondition, "False", bootstrapv1.SeveralAgentsReason, Wrong},
		{kindConfig, bootstrapv1.DiscoveryImageReadyCondition, "False", bootstrapv1.WaitingForPullSecretReason, Waits},
		{kindConfig, clusterv1.ReadyCondition, "False", "IssuesReported", Waits},
		{kindControlPlane, controlplanev1.InstalledCondition, "False", controlplanev1.RetriesExhaustedReason, Wrong},
		{kindControlPlane, controlplanev1.UpgradingCondition, "True", controlplanev1.UpgradeInProgressReason, Goes},
		{kindControlPlane, controlplanev1.UpgradingCondition, "True", controlplanev1.UpgradeStalledReason, Wrong},
		{kindControlPlane, controlplanev1.UpgradingCondition, "False", controlplanev1.NotUpgradingReason, Good},
		{kindControlPlane, controlplanev1.EtcdClusterHealthyCondition, "False", controlplanev1.EtcdClusterNotHealthyReason, Wrong},
		{kindMachine, clusterv1.DeletingCondition, "True", "Deleting", Goes},
		{kindMachine, clusterv1.DeletingCondition, "False", "NotDeleting", Good},
		{kindInstall, installFailed, "True", "InstallationFailed", Wrong},
		{kindInstall, installFailed, "False", "InstallationNotFailed", Good},
		{kindInstall, installPreparationFailed, "False", "", Good},
		{kindInstall, installStopped, "True", "InstallationCompleted", Good},
	} {
		c := condition(test.condition, test.status, test.reason, "", 0)
		NewWithT(t).Expect(verdictOf(test.kind, c)).To(Equal(test.want), "%+v", test)
	}
}

func TestRecorder(t *testing.T) {
	g := NewWithT(t)
	r := NewRecorder()
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	config.Name = "worker"
	for i, reason := range []string{
		bootstrapv1.WaitingForAgentReason, bootstrapv1.AgentNotRecognizedReason, bootstrapv1.AgentNotRecognizedReason, "Recognized",
		bootstrapv1.AgentNotRecognizedReason, bootstrapv1.SeveralAgentsReason,
	} {
		status := metav1.ConditionFalse
		if reason == "Recognized" {
			status = metav1.ConditionTrue
		}
		config.Status.Conditions = []metav1.Condition{condition(bootstrapv1.HostRecognizedCondition, status, reason, reason, 0)}
		r.Observe(config, start.Add(time.Duration(i)*time.Minute))
	}
	fault := func(reason string, from, to, count int) PastFault {
		return PastFault{
			Kind: kindConfig, Name: "worker", Condition: bootstrapv1.HostRecognizedCondition, Reason: reason, Message: reason, Count: count,
			From: start.Add(time.Duration(from) * time.Minute), To: start.Add(time.Duration(to) * time.Minute),
		}
	}
	g.Expect(r.Faults(start.Add(time.Hour))).To(Equal([]PastFault{
		fault(bootstrapv1.AgentNotRecognizedReason, 1, 5, 2), fault(bootstrapv1.SeveralAgentsReason, 5, 60, 1),
	}))
}
