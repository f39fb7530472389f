// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// stage is what a config tells: the reasons of its conditions, of which those in ok are True.
type stage struct {
	image, healthy, recognized, installed string
	created, bound, deleting              bool
}

var trueReasons = map[string]bool{
	bootstrapv1.DiscoveryImageReadyReason: true, bootstrapv1.HostHealthyReason: true, bootstrapv1.HostNotAssociatedReason: true,
	bootstrapv1.HostRecognizedReason: true, bootstrapv1.NodeJoinedReason: true, bootstrapv1.AgentInstalledReason: true,
}

func (s stage) config() *bootstrapv1.OpenshiftAssistedConfig {
	c := &bootstrapv1.OpenshiftAssistedConfig{}
	c.CreationTimestamp = metav1.NewTime(noon)
	for conditionType, reason := range map[string]string{
		bootstrapv1.DiscoveryImageReadyCondition: s.image, bootstrapv1.HostHealthyCondition: s.healthy,
		bootstrapv1.HostRecognizedCondition: s.recognized, bootstrapv1.AgentInstalledCondition: s.installed,
	} {
		if reason == "" {
			continue
		}
		status := metav1.ConditionFalse
		if trueReasons[reason] {
			status = metav1.ConditionTrue
		}
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: conditionType, Reason: reason, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(time.Hour)),
		})
	}
	if s.created {
		c.Status.Initialization.DataSecretCreated = ptr.To(true)
	}
	if s.bound {
		c.Annotations = map[string]string{bootstrapv1.InstallationDiskAnnotation: bootstrapv1.InstallationDiskDefault}
	}
	if s.deleting {
		c.DeletionTimestamp = &metav1.Time{Time: noon}
	}
	return c
}

// way is the way of a host without trouble.
var way = []stage{
	{},
	{image: bootstrapv1.InfraEnvPendingReason, healthy: bootstrapv1.HostNotAssociatedReason, recognized: bootstrapv1.WaitingForHostReason},
	{
		image: bootstrapv1.DiscoveryImageReadyReason, healthy: bootstrapv1.HostNotAssociatedReason, recognized: bootstrapv1.WaitingForHostReason,
		created: true,
	},
	{
		image: bootstrapv1.DiscoveryImageReadyReason, healthy: bootstrapv1.HostHealthyReason, recognized: bootstrapv1.WaitingForHostReason,
		created: true, installed: bootstrapv1.WaitingForRecognitionReason,
	},
	{
		image: bootstrapv1.DiscoveryImageReadyReason, healthy: bootstrapv1.HostHealthyReason, recognized: bootstrapv1.WaitingForAgentReason,
		created: true, installed: bootstrapv1.WaitingForRecognitionReason,
	},
	{
		image: bootstrapv1.DiscoveryImageReadyReason, healthy: bootstrapv1.HostHealthyReason, recognized: bootstrapv1.HostRecognizedReason,
		created: true, installed: bootstrapv1.AgentBindingReason, bound: true,
	},
	{
		image: bootstrapv1.DiscoveryImageReadyReason, healthy: bootstrapv1.HostHealthyReason, recognized: bootstrapv1.HostRecognizedReason,
		created: true, installed: bootstrapv1.AgentInstallingReason, bound: true,
	},
	{
		image: bootstrapv1.DiscoveryImageReadyReason, healthy: bootstrapv1.HostHealthyReason, recognized: bootstrapv1.HostRecognizedReason,
		created: true, installed: bootstrapv1.AgentInstalledReason, bound: true,
	},
}

// TestPhases: each phase is reached by the write that tells of it, and by no other.
func TestPhases(t *testing.T) {
	all := []string{
		metrics.PhaseMedia, metrics.PhaseHostChosen, metrics.PhaseBooted, metrics.PhaseRecognised, metrics.PhaseBound,
		metrics.PhaseInstalling, metrics.PhaseInstalled,
	}
	recognized := stage{recognized: bootstrapv1.HostRecognizedReason, bound: true, installed: bootstrapv1.AgentInstallingReason}
	unread := recognized
	unread.installed = bootstrapv1.ReadFailedReason
	disputed := recognized
	disputed.recognized = bootstrapv1.SeveralAgentsReason
	moved := stage{
		created: true, recognized: bootstrapv1.NodeJoinedReason, healthy: bootstrapv1.HostHealthyReason, installed: bootstrapv1.NodeJoinedReason,
	}
	end := way[len(way)-1]
	going := end
	going.deleting = true
	for name, test := range map[string]struct {
		before, after stage
		want          []string
	}{
		"the media":                        {way[1], way[2], []string{metrics.PhaseMedia}},
		"the host":                         {way[2], way[3], []string{metrics.PhaseHostChosen}},
		"the boot":                         {way[3], way[4], []string{metrics.PhaseBooted}},
		"recognised and bound in one pass": {way[4], way[5], []string{metrics.PhaseRecognised, metrics.PhaseBound}},
		"installing":                       {way[5], way[6], []string{metrics.PhaseInstalling}},
		"installed":                        {way[6], way[7], []string{metrics.PhaseInstalled}},
		"all at once":                      {way[0], way[7], all},
		"nothing changes":                  {way[7], way[7], nil},
		"after a read that failed":         {unread, recognized, nil},
		"recognised again after a dispute": {disputed, recognized, nil},
		"a Machine that was moved here":    {way[0], moved, nil},
		"a config that is being deleted":   {way[6], going, nil},
		"the installation needs somebody": {
			stage{installed: bootstrapv1.AgentNeedsAttentionReason, bound: true, recognized: "x"}, recognized, []string{},
		},
		"the host is looked at after its reboot only": {
			way[5], stage{installed: bootstrapv1.AgentPendingUserActionReason, bound: true, recognized: bootstrapv1.HostRecognizedReason,
				created: true}, []string{metrics.PhaseInstalling},
		},
		"an Agent that is gone is installed": {way[7], stage{installed: bootstrapv1.NodeJoinedReason, bound: true, created: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Phases(test.before.config(), test.after.config())
			if len(test.want) == 0 {
				NewWithT(t).Expect(got).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// TestCountsAreExact: a host is counted once in each phase, however often passes are repeated, and though the manager is another one after
// each write.
func TestCountsAreExact(t *testing.T) {
	g := NewWithT(t)
	phaseSeconds.Reset()
	imageSeconds.Reset()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
	day := func() string { return metrics.DayOne }
	for i := 1; i < len(way); i++ {
		now := noon.Add(time.Duration(i) * time.Minute)
		Count(Written{Before: way[i-1].config(), After: way[i].config(), Machine: machine, Now: now}, day)
		for range 3 { // The next passes, of this manager or another, find what is stored and change nothing.
			Count(Written{Before: way[i].config(), After: way[i].config(), Machine: machine, Now: now}, day)
		}
	}
	g.Expect(testutil.CollectAndCount(phaseSeconds)).To(Equal(len(milestones)))
	for phase, minutes := range map[string]float64{metrics.PhaseMedia: 2, metrics.PhaseBound: 5, metrics.PhaseInstalled: 7} {
		count, sum := observed(t, phaseSeconds, phase, metrics.RoleWorker, metrics.DayOne)
		g.Expect(count).To(BeEquivalentTo(1), phase)
		g.Expect(sum).To(BeNumerically("~", minutes*60), phase)
	}
	count, sum := observed(t, imageSeconds)
	g.Expect(count).To(BeEquivalentTo(1))
	g.Expect(sum).To(BeNumerically("~", 120))
}

// TestRefusals: an Agent is refused once, whatever is said afterwards.
func TestRefusals(t *testing.T) {
	g := NewWithT(t)
	several, hosts := stage{recognized: bootstrapv1.SeveralAgentsReason}, stage{recognized: bootstrapv1.SeveralHostsReason}
	g.Expect(Refusal(way[4].config(), several.config())).To(Equal(metrics.RefusedSeveralAgents))
	g.Expect(Refusal(several.config(), several.config())).To(BeEmpty())
	g.Expect(Refusal(several.config(), hosts.config())).To(BeEmpty())
	g.Expect(Refusal(stage{recognized: bootstrapv1.ReadFailedReason}.config(), hosts.config())).To(BeEmpty())

	agent, noted := &assisted.Agent{}, &assisted.Agent{}
	noted.Annotations = map[string]string{bootstrapv1.RecognitionAnnotation: "no BareMetalHost"}
	g.Expect(NoteAdded(agent, noted)).To(BeTrue())
	g.Expect(NoteAdded(noted, noted)).To(BeFalse())
	g.Expect(NoteAdded(noted, agent)).To(BeFalse())
}

// TestMachinePhases: a Machine gets its Node once, and becomes ready again and again.
func TestMachinePhases(t *testing.T) {
	machine := func(node bool, ready metav1.ConditionStatus, since time.Duration, running time.Duration) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ReadyCondition, Status: ready, Reason: "R", LastTransitionTime: metav1.NewTime(noon.Add(since)),
		}}
		if node {
			m.Status.NodeRef.Name = "n"
		}
		if running != 0 {
			m.Status.SetTypedPhase(clusterv1.MachinePhaseRunning)
			m.Status.LastUpdated = metav1.NewTime(noon.Add(running))
		}
		return m
	}
	none, joined := machine(false, metav1.ConditionFalse, 0, 0), machine(true, metav1.ConditionFalse, 0, time.Minute)
	ready, later := machine(true, metav1.ConditionTrue, time.Hour, time.Minute), machine(true, metav1.ConditionFalse, time.Hour, time.Minute)
	for name, test := range map[string]struct {
		before, after *clusterv1.Machine
		want          []string
	}{
		"the Node":             {none, joined, []string{metrics.PhaseNode}},
		"ready, then the Node": {machine(false, metav1.ConditionTrue, time.Hour, 0), ready, []string{metrics.PhaseNode, metrics.PhaseReady}},
		"both":                 {none, ready, []string{metrics.PhaseNode, metrics.PhaseReady}},
		"ready":                {joined, ready, []string{metrics.PhaseReady}},
		"a resync":             {ready, ready, nil},
		"the Node went away":   {ready, later, nil},
		"the Node comes back":  {later, ready, []string{metrics.PhaseReady}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(MachinePhases(test.before, test.after)).To(Equal(test.want))
		})
	}
}

// TestDay: a host is of day 1 until that is closed without it.
func TestDay(t *testing.T) {
	install := func(agents string, closed, completed bool) []*hiveext.AgentClusterInstall {
		i := &hiveext.AgentClusterInstall{}
		if closed {
			i.Annotations = map[string]string{assisted.DayOneAgentsAnnotation: agents}
		}
		if completed {
			i.Status.Conditions = []hivev1.ClusterInstallCondition{{
				Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
			}}
		}
		return []*hiveext.AgentClusterInstall{i}
	}
	initialized := &clusterv1.Cluster{}
	initialized.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for name, test := range map[string]struct {
		agent    string
		minutes  int // from the end of the installation to the creation of the config
		cluster  *clusterv1.Cluster
		installs []*hiveext.AgentClusterInstall
		want     string
	}{
		"open":                        {"", -60, nil, install("", false, false), metrics.DayOne},
		"takes part":                  {"b", -60, nil, install("a,b", true, true), metrics.DayOne},
		"has taken part, comes back":  {"b", 60, nil, install("a,b", true, true), metrics.DayTwo},
		"was left out":                {"c", -60, nil, install("a,b", true, false), metrics.DayTwo},
		"not registered, and closed":  {"", -60, nil, install("a,b", true, false), metrics.DayTwo},
		"imported":                    {"c", -60, initialized, install("", false, true), metrics.DayTwo},
		"moved, and not imported yet": {"c", -60, initialized, nil, metrics.DayTwo},
		"nothing is there yet":        {"", -60, &clusterv1.Cluster{}, nil, metrics.DayOne},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(
				t,
			).Expect(Day(test.agent, metav1.NewTime(noon.Add(time.Duration(test.minutes)*time.Minute)), test.cluster, test.installs)).
				To(Equal(test.want))
		})
	}
}
