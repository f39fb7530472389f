// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// scenario drives the simulator as the driver of some recordings drove the real service.
type scenario struct {
	name string
	// files are the recordings, of one run: one after the other, or, with oneClock, of overlapping times.
	files    []string
	oneClock bool
	// hosts maps the beginning of an Agent's name in the recordings to the host's name in the scenario.
	hosts map[string]string
	run   func(*driver)
	// missing are recorded changes that the simulator does not show, additional are shown without being recorded.
	missing, additional []difference
	// final are the recorded last values with which the simulator does not end.
	final []difference
}

// driver is what a scenario acts through.
type driver struct {
	*fixture
	spoke    *switchedWorkload
	recorder *recorder
	agents   map[string]string
}

// switchedWorkload is a pretended cluster whose API can be cut off.
type switchedWorkload struct {
	*instantWorkload
	down atomic.Bool
}

func (w *switchedWorkload) Status(cluster types.NamespacedName) ClusterStatus {
	if w.down.Load() {
		return ClusterStatus{}
	}
	return w.instantWorkload.Status(cluster)
}

func (w *switchedWorkload) Accepts(ctx context.Context, cluster types.NamespacedName, kubeconfig []byte) bool {
	return !w.down.Load() && w.instantWorkload.Accepts(ctx, cluster, kubeconfig)
}

func (w *switchedWorkload) RemoveNode(ctx context.Context, cluster types.NamespacedName, node string) error {
	if w.down.Load() {
		return errors.New("failed to get API group resources: unable to retrieve the complete list of server APIs")
	}
	return w.instantWorkload.RemoveNode(ctx, cluster, node)
}

// start boots a host and waits until it has registered, so that the order of registrations is the scenario's.
func (d *driver) start(infraEnv string, hosts ...string) {
	d.t.Helper()
	for _, host := range hosts {
		d.agents[host] = d.boot(host, infraEnv)
		d.recorder.name(d.agents[host], host)
		d.eventually("the Agent of host "+host, func() bool { return d.agent(d.agents[host]).UID != "" })
	}
}

func (d *driver) wait(state string, hosts ...string) {
	d.t.Helper()
	for _, host := range hosts {
		d.waitAgent(d.agents[host], state)
	}
}

// ask patches an Agent as the recordings' driver did: everything at once.
func (d *driver) ask(host, role, cluster, disk string) {
	d.t.Helper()
	d.patchAgent(d.agents[host], func(a *aiv1.Agent) {
		a.Spec.Approved, a.Spec.Role, a.Spec.Hostname = true, role, "node-"+host
		a.Spec.NodeLabels = map[string]string{"metal3.io/uuid": "u-" + host}
		a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: cluster, Namespace: d.namespace}
		a.Spec.InstallationDiskID = disk
	})
}

// disk is the identifier of a host's first disk.
func (d *driver) disk(host string) string { return d.agent(d.agents[host]).Status.InstallationDiskID }

func (d *driver) unhold(name string, controlPlanes, workers int) {
	d.t.Helper()
	d.patchACI(name, func(aci *hiveext.AgentClusterInstall) {
		aci.Spec.HoldInstallation = false
		aci.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: controlPlanes, WorkerAgents: workers}
	})
}

// laterFile puts the groups of a file after those of any file before it.
const laterFile = 1 << 20

// mergeTraces joins recordings of one run and drops what says nothing new: the files overlap, and each begins with what
// was there already.
func mergeTraces(t *testing.T, s scenario) []change {
	t.Helper()
	var all []change
	for i, file := range s.files {
		part := readTrace(t, file, s.hosts)
		for j := range part {
			if !s.oneClock {
				part[j].group += i * laterFile
			}
		}
		all = append(all, part...)
	}
	slices.SortStableFunc(all, func(a, b change) int { return a.group - b.group })
	skipConflicts(all)
	last := map[string]string{}
	return slices.DeleteFunc(all, func(c change) bool {
		key := c.object + " " + c.field
		known := last[key] == c.value && c.field != "DELETED"
		last[key] = c.value
		return known
	})
}

// skipConflicts gives a value that is there by chance the value that came after it.
func skipConflicts(all []change) {
	for i := range all {
		if !chance.covers(all[i]) {
			continue
		}
		next := slices.IndexFunc(all[i+1:], func(c change) bool { return c.object == all[i].object && c.field == all[i].field })
		if next >= 0 {
			all[i].value = all[i+1+next].value
		}
	}
}

func runScenario(t *testing.T, s scenario) {
	t.Helper()
	recorded := mergeTraces(t, s)
	spoke := &switchedWorkload{instantWorkload: newInstantWorkload()}
	f := newFixture(t, Options{Workload: spoke, Durations: replayDurations(), OSImages: []OSImage{{Version: "4.20"}}, ShowEveryState: true})
	d := &driver{fixture: f, spoke: spoke, recorder: f.record(), agents: map[string]string{}}
	s.run(d)
	d.eventually("the recorder to see the last change", d.recorder.current)
	simulated := d.recorder.take()
	compareTrace(t, recorded, simulated, s.missing, s.additional)
	compareFinal(t, recorded, simulated, s.final)
}

// TestConformance replays the recordings of the real service.
func TestConformance(t *testing.T) {
	scenarios := slices.Concat(earlyScenarios(), additionScenarios(), failureScenarios(), lateScenarios())
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			runScenario(t, s)
		})
	}
	t.Run("every recording is replayed", func(t *testing.T) { checkCoverage(t, scenarios) })
}

// unusedTraces are the recordings that no scenario replays, and why.
var unusedTraces = map[string]string{
	"late-marks.log": "has no change of an object, but what the driver of the late recordings did and when: runLate does the same",
}

// checkCoverage expects every recording either to be replayed or to be listed with a reason.
func checkCoverage(t *testing.T, scenarios []scenario) {
	t.Helper()
	var replayed []string
	for _, s := range scenarios {
		replayed = append(replayed, s.files...)
	}
	files := traceFiles(t)
	for _, file := range files {
		if slices.Contains(replayed, file) == (unusedTraces[file] != "") {
			t.Errorf("%s has to be replayed by a scenario or to be listed in unusedTraces with a reason, not both", file)
		}
	}
	for file := range unusedTraces {
		if !slices.Contains(files, file) {
			t.Errorf("unusedTraces lists %s, which is no recording", file)
		}
	}
}
