// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/report"
)

// phaseOf are the phases of the report by the milestone that ends each.
var phaseOf = map[Milestone]report.Phase{
	BootMediaReady: report.Media, HostChosen: report.HostChosen, HostProvisioned: report.Booted, AgentRecognised: report.Recognised,
	AgentBound: report.Bound, InstallStarted: report.Installing, HostInstalled: report.Installed, NodeJoined: report.Node,
	MachineReadyMark: report.Ready,
}

// history is what the sandbox has seen of the Machines and the faults of a cluster.
func (t *Timeline) history(recorder *report.Recorder, now time.Time) *report.History {
	t.mu.Lock()
	defer t.mu.Unlock()
	history := &report.History{Faults: recorder.Faults(now)}
	for uid, machine := range t.machines {
		if uid == "" {
			continue // A host that was taken before its Machine was seen.
		}
		past := report.PastMachine{UID: uid, Name: machine.name, Created: machine.passed[MachineCreated], Passed: map[report.Phase]time.Time{}}
		for milestone, phase := range phaseOf {
			if at, passed := machine.passed[milestone]; passed {
				past.Passed[phase] = at
			}
		}
		history.Machines = append(history.Machines, past)
	}
	return history
}

// remember tells the recorder of what happens to the run's cluster.
func (r *run) remember(object client.Object) {
	if object.GetNamespace() == r.cluster.Namespace {
		r.recorder.Observe(object, time.Now())
	}
}

// writeReport writes the page about the cluster, as it is now, and says where it is.
func (r *run) writeReport(ctx context.Context) error {
	writes, err := r.world.managersWrites()
	if err != nil {
		return err
	}
	in, err := report.Collect(ctx, r.world.Client, r.cluster)
	if err != nil {
		return err
	}
	in.History = r.timeline.history(r.recorder, in.Now)
	for _, manager := range writes {
		writer := report.Writer{Name: manager.name}
		for _, write := range manager.writes {
			writer.Writes = append(writer.Writes, report.Write{Verb: write.Verb, Resource: write.Resource, Count: write.Count})
		}
		in.Writes = append(in.Writes, writer)
	}
	path := r.outFile(report.FileName(r.cluster.Name))
	if err := report.WriteFile(path, in); err != nil {
		return err
	}
	r.narrator.printf("the report about the cluster is %s", path)
	return nil
}
