// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"
	"testing"
	"time"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// soon is a time for stages with which every time-out is soon over.
const soon = 5 * time.Second

// timedCluster takes a single node to known, with a time for its stages from which all time-outs follow, and approves it. The host hangs in
// a stage, or the cluster while it is finalized.
func timedCluster(t *testing.T, stageTimeout time.Duration, w Workload, hang string) (f *fixture, agent string) {
	t.Helper()
	d := fastDurations()
	d.StageTimeout = stageTimeout
	f = newFixture(t, Options{Durations: d, Workload: w})
	f.sim.Faults().StageHang(f.key("h0"), hang)
	f.sim.Faults().FinalizingHangs(f.key("s1"), hang == clusterFinalizing)
	f.cluster("s1", 1, 0, false)
	f.infraEnv("ie", "s1")
	agent = f.boot("h0", "ie")
	f.waitAgent(agent, hostKnown)
	f.patchAgent(agent, func(a *aiv1.Agent) { a.Spec.Approved = true })
	return f, agent
}

// TestStageTimeout: a host that is in one stage for too long fails, and with it the cluster.
func TestStageTimeout(t *testing.T) {
	f, agent := timedCluster(t, soon, nil, StageWritingImage)
	f.waitAgent(agent, hostError)
	f.waitCluster("s1", clusterError)
	want := "installation stage Writing image to disk took longer than expected 2.5s"
	if info := f.agent(agent).Status.DebugInfo.StateInfo; !strings.Contains(info, want) {
		t.Errorf("the host failed because of %q, want %q", info, want)
	}
}

// TestPreparationTimeout: a preparation that does not end is given up, and begins anew.
func TestPreparationTimeout(t *testing.T) {
	f, _ := timedCluster(t, soon, nil, hostPreparing)
	f.eventually("the preparation to be given up", func() bool {
		return f.aci("s1").Status.DebugInfo.StateInfo == "Preparing cluster for installation timeout"
	})
	f.waitCluster("s1", clusterPreparing)
	f.sim.Faults().StageHang(f.key("h0"), "")
	f.waitCluster("s1", clusterAddingHosts)
}

// TestFinalizingTimeout: a cluster whose API does not come back fails while it is finalized.
func TestFinalizingTimeout(t *testing.T) {
	w := &switchedWorkload{instantWorkload: newInstantWorkload()}
	f, _ := timedCluster(t, soon, w, clusterFinalizing)
	f.waitCluster("s1", clusterFinalizing)
	w.down.Store(true)
	f.sim.Faults().FinalizingHangs(f.key("s1"), false)
	f.waitCluster("s1", clusterError)
	if info := f.aci("s1").Status.DebugInfo.StateInfo; info != "Cluster installation timeout while finalizing" {
		t.Errorf("the cluster failed because of %q", info)
	}
}

// TestFinalizingFails: a cluster whose operators do not come up fails, and its installed hosts turn to errors. What tells that they were
// installed are their stage and the percentage.
func TestFinalizingFails(t *testing.T) {
	const message = "Cluster finalizing stage 'Waiting for cluster operators' has been timed out after timeout duration of 600 minutes"
	f, name := timedCluster(t, time.Hour, nil, clusterFinalizing)
	f.waitCluster("s1", clusterFinalizing)
	f.waitAgent(name, hostInstalled)
	f.sim.Faults().FinalizingFails(f.key("s1"), message)
	f.waitCluster("s1", clusterError)
	f.waitAgent(name, hostError)
	status := f.agent(name).Status
	if status.DebugInfo.StateInfo != "Host is part of a cluster that failed to install" {
		t.Errorf("the host failed because of %q", status.DebugInfo.StateInfo)
	}
	if status.Progress.CurrentStage != StageDone || status.Progress.InstallationPercentage != 100 {
		t.Errorf("the installed host has the progress %+v", status.Progress)
	}
	aci := f.aci("s1").Status
	if aci.DebugInfo.StateInfo != message || aci.Progress.TotalPercentage < 80 {
		t.Errorf("the cluster failed because of %q with %d percent", aci.DebugInfo.StateInfo, aci.Progress.TotalPercentage)
	}
}

// TestStageLimits: the times of ASSISTED 3, in minutes.
func TestStageLimits(t *testing.T) {
	d := Durations{StageTimeout: time.Hour}
	for stage, want := range map[string]time.Duration{
		StageStarting: 30 * time.Minute, StageInstalling: time.Hour, StageWritingImage: 30 * time.Minute,
		StageCopyingRegistry: 90 * time.Minute, StageWaitingIgnition: 24 * time.Hour, StageJoined: time.Hour,
	} {
		if got := d.stageLimit(stage); got != want {
			t.Errorf("stage %s may take %s, want %s", stage, got, want)
		}
	}
	if d.prepareLimit() != 18*time.Minute || d.finalizeLimit() != 5*time.Hour {
		t.Errorf("a cluster may prepare for %s and be finalized for %s", d.prepareLimit(), d.finalizeLimit())
	}
}
