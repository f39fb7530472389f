// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/sim/metal3/trace"
)

const (
	// outputTimeout is how long a recorded output may take to appear in the simulation.
	outputTimeout = 2 * time.Minute
	// nudgeAfter is how long it may take before the 30 s timer that CAPM3 had in the recording is stood in for.
	nudgeAfter = 500 * time.Millisecond
	// silence is the number of seconds without a transition after which a recording is at rest, and quiet the time for which the
	// simulation has to be, too.
	silence = 3.0
	quiet   = 200 * time.Millisecond
)

// blockMoveLine is CAPM3's last write to a host for an association.
const blockMoveLine = "metadata.annotations." + blockMoveAnnotation + ` = ""`

// comparedKinds are the kinds whose changes the simulator must show in the recorded order.
var comparedKinds = []string{kindMachine, kindCluster, "BareMetalHost", "Node"}

// inputManagers write what the replay writes: the driver of the recording, and CAPI core.
var inputManagers = regexp.MustCompile(`kubectl-(patch|label|annotate)|capi-`)

// jumpingClock runs like the real one, and can be set ahead to the time of a recorded transition.
type jumpingClock struct {
	start time.Time
	ahead atomic.Int64
}

func (c *jumpingClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *jumpingClock) jumpTo(seconds float64) {
	target := c.start.Add(time.Duration(seconds * float64(time.Second)))
	if late := target.Sub(c.Now()); late > 0 {
		c.ahead.Add(int64(late))
	}
}

// replay feeds the inputs of a recording to a simulator and waits for each recorded output before it goes on.
type replay struct {
	*testing.T
	scenario
	recording *trace.Recording
	world     *world
	client    client.Client
	recorder  *trace.Recorder
	faults    *Faults
	clock     *jumpingClock
	shape     shape
	// wanted counts the recorded lines up to the present transition, by object and line.
	wanted map[string]map[string]int
	nudges int
	// working are the hosts that the recording has in the state provisioning or deprovisioning now.
	working map[string]bool
}

func (r *replay) run(ctx context.Context) {
	settleRaces(r.recording)
	last := 0.0
	for i := range r.recording.Transitions {
		transition := &r.recording.Transitions[i]
		if transition.T-last > silence {
			r.settle()
		}
		last = transition.T
		r.clock.jumpTo(transition.T)
		switch {
		case transition.Action != "":
			r.act(ctx, transition.Action)
		case transition.Event != "":
		case r.isInput(transition):
			r.holdNew(transition)
			r.expect(transition)
			if err := r.world.apply(ctx, transition); err != nil {
				r.Fatalf("t=%v: apply %s: %v", transition.T, transition.Object, err)
			}
		case slices.Contains(comparedKinds, transition.Kind()):
			r.expect(transition)
			r.awaitHost(ctx, transition)
		}
	}
}

// settle waits until the simulation is quiet, as the recording was: what should not happen must have had the time to happen.
func (r *replay) settle() {
	for {
		_, changed := r.recorder.Transitions()
		select {
		case <-changed:
		case <-time.After(quiet):
			return
		}
	}
}

// act does what the driver of the recording did beside the API.
func (r *replay) act(ctx context.Context, action string) {
	for text, do := range r.actions {
		if strings.Contains(action, text) {
			do(ctx, r)
		}
	}
}

// isInput tells who caused a transition. A manager that writes twice within a second shows no manager the second time: such
// writes are told apart by their fields, or by the scenario.
func (r *replay) isInput(transition *trace.Transition) bool {
	if slices.Contains(r.inputs, transition.T) {
		return true
	}
	switch {
	case transition.Op == trace.Added:
		return transition.Kind() != "HardwareData"
	case transition.Op == trace.Deleted:
		return slices.Contains([]string{"Machine", "Cluster", "Node"}, transition.Kind())
	case transition.Kind() == "Machine" || transition.Kind() == "Cluster":
		return true
	case inputManagers.MatchString(transition.By) && !strings.Contains(transition.By, "cluster-api-provider-metal3-manager,kubectl-create"):
		return true
	case transition.Kind() == "Node" && transition.By == "kubectl-create":
		return true
	}
	_, deleted := transition.Set["metadata.deletionTimestamp"]
	return deleted
}

// Hosts are kept in the states provisioning and deprovisioning until the recording leaves them: how long they take is not the
// simulator's to know.
func (r *replay) holdNew(transition *trace.Transition) {
	if transition.Kind() == "BareMetalHost" && transition.Op == trace.Added {
		r.setHeld(transition.Name(), true)
	}
}

// awaitHost lets a host out of such a state for the transition in which the recording leaves it.
func (r *replay) awaitHost(ctx context.Context, transition *trace.Transition) {
	host := transition.Name()
	_, failed := transition.Set["status.errorType"]
	state, moved := transition.Set["status.provisioning.state"].(string)
	leaves := r.working[host] && (moved || failed)
	if leaves && failed {
		// CAPM3's late write of this annotation would make BMO try again at once, and so once more than in the recording.
		r.awaitLine(ctx, transition, blockMoveLine)
	}
	if leaves {
		r.setHeld(host, false)
	}
	r.await(ctx, transition)
	if leaves {
		r.setHeld(host, true)
	}
	if moved {
		r.working[host] = state == string(bmov1alpha1.StateProvisioning) || state == string(bmov1alpha1.StateDeprovisioning)
	}
}

// quietly changes a host's faults without making BMO look at the host.
func (r *replay) quietly(host string, change func(*hostFaults)) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	change(r.faults.hosts[r.host(host)])
}

func (r *replay) setHeld(host string, held bool) {
	r.faults.set(r.host(host), func(h *hostFaults) { h.neverProvision, h.neverDeprovision = held, held })
}

func (r *replay) host(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.recording.Namespace, Name: name}
}

func (r *replay) expect(transition *trace.Transition) {
	if transition.Op == trace.Added {
		return
	}
	if r.wanted[transition.Object] == nil {
		r.wanted[transition.Object] = map[string]int{}
	}
	for _, line := range r.recordedLines(transition) {
		r.wanted[transition.Object][line]++
	}
}

// await waits until the simulation has shown everything that the recording has shown of the object so far.
func (r *replay) await(ctx context.Context, transition *trace.Transition) {
	r.wake()
	r.awaitNone(ctx, transition, func(transitions []trace.Transition) []string {
		return r.missing(transition.Object, transitions)
	})
}

// awaitLine waits until the simulation has shown a line of the transition's object.
func (r *replay) awaitLine(ctx context.Context, transition *trace.Transition, line string) {
	r.awaitNone(ctx, transition, func([]trace.Transition) []string {
		if slices.Contains(r.simulated(transition.Object), line) {
			return nil
		}
		return []string{line}
	})
}

// awaitNone waits until nothing is missing from the transition's object.
func (r *replay) awaitNone(ctx context.Context, transition *trace.Transition, missingFrom func([]trace.Transition) []string) {
	deadline, nudge := time.After(outputTimeout), time.NewTicker(nudgeAfter)
	defer nudge.Stop()
	for {
		transitions, changed := r.recorder.Transitions()
		missing := missingFrom(transitions)
		if len(missing) == 0 {
			return
		}
		select {
		case <-changed:
		case <-nudge.C:
			r.nudge(ctx, transition)
		case <-deadline:
			r.Fatalf("t=%v: %s does not show %q\nso far:\n%s", transition.T, transition.Object, missing,
				strings.Join(r.simulated(transition.Object), "\n"))
		}
	}
}

func (r *replay) missing(object string, transitions []trace.Transition) []string {
	seen := map[string]int{}
	for i := range transitions {
		if transitions[i].Object == object {
			for _, line := range r.simulatedLines(&transitions[i]) {
				seen[line]++
			}
		}
	}
	var missing []string
	for line, count := range r.wanted[object] {
		if seen[line] < count && !r.allows(object, trace.Difference{Recorded: true, Line: line}) {
			missing = append(missing, line)
		}
	}
	slices.Sort(missing)
	return missing
}

// wake makes the simulated BMO look at the clock.
func (r *replay) wake() { r.faults.set(types.NamespacedName{}, func(*hostFaults) {}) }

// nudge stands in for CAPM3's timers, which are off in the replay: a change of its Machine makes CAPM3 look at a Metal3Machine too.
func (r *replay) nudge(ctx context.Context, transition *trace.Transition) {
	r.wake()
	name := timerOf(transition)
	if name == "" {
		return
	}
	r.nudges++
	machine := &clusterv1.Machine{}
	err := r.client.Get(ctx, r.host(name), machine)
	if err == nil {
		before := machine.DeepCopy()
		setAnnotation(machine, "replay/nudge", fmt.Sprint(r.nudges))
		err = r.client.Patch(ctx, machine, client.MergeFrom(before))
	}
	// A Machine that is gone has no timer left to stand in for: an output that is still waited for is on its way to the recorder, or never
	// comes.
	if client.IgnoreNotFound(err) != nil {
		r.Fatalf("nudge Machine %s: %v", name, err)
	}
}

// timerOf names the Metal3Machine, and so the Machine, whose timer a transition may have waited for; none for a write of BMO's.
func timerOf(transition *trace.Transition) string {
	if transition.Kind() == kindMachine {
		return transition.Name()
	}
	if consumer, ok := transition.Set["spec.consumerRef.name"].(string); ok {
		return consumer
	}
	providerID, _ := transition.Set["spec.providerID"].(string)
	return providerID[strings.LastIndex(providerID, "/")+1:]
}

// recordedLines are the lines of a recorded transition in the words of the installed API version.
func (r *replay) recordedLines(transition *trace.Transition) []string {
	return r.visible(transition, func(line string) string { return r.shape.translate(transition.Kind(), line) })
}

// simulatedLines are the lines of a simulated transition with the recording's UIDs.
func (r *replay) simulatedLines(transition *trace.Transition) []string {
	if transition.Op == trace.Added {
		return nil
	}
	return r.visible(transition, r.world.withRecordedUIDs)
}

func (r *replay) visible(transition *trace.Transition, translate func(string) string) []string {
	var lines []string
	for _, line := range transition.Lines() {
		if line = translate(line); line != "" && !incomparable(line) {
			lines = append(lines, statusCopy.ReplaceAllString(line, "$1"))
		}
	}
	slices.Sort(lines)
	return lines
}

func (r *replay) simulated(object string) []string {
	transitions, _ := r.recorder.Transitions()
	var lines []string
	for i := range transitions {
		if transitions[i].Object == object {
			lines = append(lines, r.simulatedLines(&transitions[i])...)
		}
	}
	return lines
}

// recorded returns the recorded lines of all compared objects.
func (r *replay) recorded() map[string][]string {
	lines := map[string][]string{}
	for i := range r.recording.Transitions {
		transition := &r.recording.Transitions[i]
		if transition.Op != trace.Added && slices.Contains(comparedKinds, transition.Kind()) {
			lines[transition.Object] = append(lines[transition.Object], r.recordedLines(transition)...)
		}
	}
	return lines
}

// compare reports every difference that the scenario does not allow. An allowed difference on the way still has to end in the
// recorded state.
func (r *replay) compare() {
	recorded := r.recorded()
	objects := slices.Sorted(maps.Keys(recorded))
	for _, object := range objects {
		simulated := r.simulated(object)
		differences := trace.Compare(recorded[object], simulated)
		for _, difference := range differences {
			if !r.moved(object, difference, differences) && !r.allows(object, difference) {
				r.Errorf("%s: %s", object, difference)
			}
		}
		wanted, got := final(recorded[object]), final(simulated)
		for _, path := range slices.Sorted(maps.Keys(wanted)) {
			difference := trace.Difference{Recorded: true, Line: wanted[path]}
			if got[path] != wanted[path] && !allows(r.allowed, object, difference) {
				r.Errorf("%s ends with %q instead of %q", object, got[path], wanted[path])
			}
		}
	}
}

// final returns the last line for each path.
func final(lines []string) map[string]string {
	last := map[string]string{}
	for _, line := range lines {
		path, _, _ := strings.Cut(strings.TrimPrefix(line, "- "), " = ")
		last[path] = line
	}
	return last
}

// moved tells whether a line that may move has its counterpart elsewhere in the other sequence.
func (r *replay) moved(object string, difference trace.Difference, all []trace.Difference) bool {
	return (allows(races, object, difference) || allows(r.moves, object, difference)) &&
		slices.Contains(all, trace.Difference{Recorded: !difference.Recorded, Line: difference.Line})
}

func (r *replay) allows(object string, difference trace.Difference) bool {
	return allows(r.allowed, object, difference) || allows(interleavings, object, difference)
}

func allows(list []allowance, object string, difference trace.Difference) bool {
	return slices.ContainsFunc(list, func(a allowance) bool { return a.matches(object, difference) })
}
