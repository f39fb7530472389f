// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/capi-openshift/agent-providers/test/sim/metal3/trace"
)

// scenario is a recording and what its replay needs beside it.
type scenario struct {
	file string
	// inputs are the times of transitions that the driver of the recording caused although they show another manager.
	inputs []float64
	// seed chooses the host that CAPM3's random choice happened to be.
	seed *int64
	// actions are done at the recorded actions whose text contains the key.
	actions map[string]action
	allowed []allowance
	// moves are lines whose place may differ, as in races.
	moves []allowance
}

// action is what the driver of a recording did beside the API, such as breaking a BMC.
type action func(context.Context, *replay)

// allowance is a difference that is no fault of the simulator.
type allowance struct {
	object, line *regexp.Regexp
	reason       string
}

func (a allowance) matches(object string, difference trace.Difference) bool {
	return a.object.MatchString(object) && a.line.MatchString(difference.String())
}

func allow(object, line, reason string) allowance {
	return allowance{object: regexp.MustCompile(object), line: regexp.MustCompile(line), reason: reason}
}

// incomparableLines are left out on both sides.
var incomparableLines = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`^(- )?metadata\.(uid|creationTimestamp|deletion)`), "given by the API server"},
	{regexp.MustCompile(`^(- )?status\.(good|tried)Credentials`), "the resource version of a Secret"},
	{regexp.MustCompile(`^(- )?status\.(lastAttemptedImage|provisioningFailCount)`), "newer than the BMO API module that can be had"},
	{regexp.MustCompile(`^spec\.image\.checksum = ""`), "the v1beta1 schema wants one even where it means nothing"},
}

// statusCopy is the annotation with a host's whole status, times included, of which only the presence can be compared.
var statusCopy = regexp.MustCompile(`^(metadata\.annotations\.baremetalhost\.metal3\.io/status) = .*`)

func incomparable(line string) bool {
	for _, left := range incomparableLines {
		if left.pattern.MatchString(line) {
			return true
		}
	}
	return false
}

// races are lines whose place depends on which of two independent writers, CAPM3 and BMO, is first. They must be there, on both
// sides, somewhere.
var races = []allowance{
	allow("BareMetalHost/", "clusterctl.cluster.x-k8s.io/block-move", "CAPM3 sets it in the pass after the association, while BMO provisions"),
	allow("BareMetalHost/", "status.poweredOn|status.provisioning.rootDeviceHints", "BMO goes on while CAPM3 removes the consumer"),
	allow("BareMetalHost/", "baremetalhost.metal3.io/status", "it is removed in a write of its own after the pause, while BMO goes on"),
	allow("Node/", "spec.providerID", "CAPM3 finds the Node while the kubelet reports"),
	allow("Metal3Machine/", "status.addresses", "the first pass that finds no error at the host writes them"),
}

// interleavings are lines that depend on how often one manager runs while the other works. What they end in is compared all the same.
var interleavings = []allowance{
	allow("Metal3Machine/", `AssociateMetal3MachineMetaData] = "True/`,
		"CAPM3 says so in every pass between the association and the end of provisioning, if there is one"),
	allow("Metal3Machine/", `\[Ready] = "Unknown/ReadyUnknown: \* Metal3DataReady: Condition not yet reported"`, "the same pass"),
	allow(
		"Metal3Machine/", "deprovisioning BareMetalHost, requeuing. Object will be requeued after",
		"how often CAPM3 looks while BMO deprovisions",
	),
}

// noNodeYet is for the recordings in which the Node was created while CAPM3 was about to look for it.
var noNodeYet = allow("Metal3Machine/", "could not find node with label", "whether CAPM3 looks before the Node is there")

func scenarios() []scenario {
	return []scenario{
		{file: "a-live-iso-full-life"},
		{
			file: "a2-live-iso-ignition-fast-path",
			allowed: []allowance{
				noNodeYet,
				allow(
					"BareMetalHost/host-a2", "recorded only: .*poweredOn", "CAPM3 switches the host on again after 20 ms: BMO may not look in between",
				),
			},
		},
		{
			file: "a3-bootstrap-secret-variants",
			allowed: []allowance{
				allow("Metal3Machine/m0", "recorded only: .*no Nodes found", "the replays share one API server, which has Nodes of others"),
			},
			moves: []allowance{
				allow("Metal3Machine/m[01]", "spec.providerID|status.(initialization.provisioned|ready)",
					"the first pass that finds the host provisioned writes them"),
			},
		},
		{
			file: "b-image-patching", inputs: []float64{115.14},
			moves: []allowance{
				allow("BareMetalHost/hb-0", `spec.image.(format|url = ".*\?v=2")`,
					"CAPM3 puts the cleared image back before or after BMO begins to deprovision"),
			},
		},
		{file: "c-node-cases"},
		{
			file: "d-deletion-and-node-reuse", seed: ptr.To(int64(2)), allowed: []allowance{noNodeYet},
			actions: map[string]action{"create Metal3MachineTemplate t (nodeReuse)": createReuseTemplate},
		},
		hostErrors(),
		errorsInUse(),
	}
}

func hostErrors() scenario {
	return scenario{
		file: "e1-host-errors-before-association", seed: ptr.To(int64(2)),
		allowed: []allowance{
			allow("BareMetalHost/he-reg", "recorded only:  status.errorCount = 2", "BMO looked again when it had adopted the BMC Secret"),
		},
		actions: map[string]action{
			"create Cluster ce": func(_ context.Context, r *replay) {
				r.faults.RegistrationError(
					r.host("he-reg"), "Failed to get power state for node x. Error: Redfish exception occurred. Error: Unauthorized",
				)
				r.faults.InspectionError(r.host("he-ins"), "timeout reached while inspecting the node")
				r.faults.PowerFailure(r.host("he-pow"), "Failed to change power state to power on")
			},
			"errors removed": func(_ context.Context, r *replay) {
				for _, host := range []string{"he-reg", "he-ins", "he-pow"} {
					r.faults.set(r.host(host), func(h *hostFaults) { h.registration, h.inspection, h.power = "", "", "" })
				}
			},
		},
	}
}

func errorsInUse() scenario {
	return scenario{
		file: "e2-errors-pause-detach-remediation-on-associated-hosts", inputs: []float64{147.29, 172.64},
		allowed: []allowance{
			noNodeYet,
			allow("BareMetalHost/hf-2|Node/e2-n2", `recorded only: .*(reboot\.metal3\.io|poweredOn|unhealthy|spec\.taints)`,
				"Metal3Remediation is not simulated"),
			allow("BareMetalHost/hf-0", "recorded only:  status.errorCount = 2", "BMO repeats an error that nothing can end"),
			allow("BareMetalHost/hf-1", `recorded only: .*(power|errorCount = 2|"error"|False/Error)`,
				"CAPM3 asks for power again at once: BMO may or may not have tried to switch it off before"),
		},
		moves: []allowance{
			allow("BareMetalHost/hf-1", `conditions\[Manageable]`, "the end of a power failure shows when BMO looks next"),
			allow("BareMetalHost/hf-1", "spec.online = true", "CAPM3 asks for power again before, while or after BMO fails to switch it off"),
		},
		actions: map[string]action{
			"create Cluster cf": func(_ context.Context, r *replay) {
				r.faults.ProvisioningError(
					r.host("hf-0"), "Image provisioning failed: Deploy step deploy.deploy failed: Failed to insert virtual media", 0,
				)
			},
			"BMC of hf-1 breaks": func(_ context.Context, r *replay) {
				r.quietly("hf-1", func(h *hostFaults) { h.registration = "BMC is unreachable" })
			},
			"BMC of hf-1 works again": func(_ context.Context, r *replay) {
				r.quietly("hf-1", func(h *hostFaults) { h.registration, h.power = "", "power off failed" })
			},
			"power fault removed": func(_ context.Context, r *replay) {
				r.quietly("hf-1", func(h *hostFaults) { h.power = "" })
			},
		},
	}
}

// createReuseTemplate creates the template of the recording's MachineDeployment, which the recording does not show.
func createReuseTemplate(ctx context.Context, r *replay) {
	template := r.shape.newObject(kindMachineTemplate)
	template.SetNamespace(r.recording.Namespace)
	template.SetName("t")
	image := map[string]any{"url": "http://192.0.2.250/images/discovery.iso", "checksum": "", r.shape.diskFormat: formatLiveISO}
	template.Object["spec"] = map[string]any{
		"nodeReuse": true,
		"template":  map[string]any{"spec": map[string]any{"image": image}},
	}
	NewWithT(r.T).Expect(r.client.Create(ctx, template)).To(Succeed())
}

// conform replays a recording of the real managers: the same inputs must give the same order of changes.
func conform(t *testing.T, s *server, scenario scenario) {
	g := NewWithT(t)
	ctx := t.Context()
	recording, err := trace.Read(filepath.Join("testdata", scenario.file+".yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: recording.Namespace}}
	g.Expect(s.client.Create(ctx, namespace)).To(Succeed())
	clock := &jumpingClock{start: time.Now()}
	simulator := startSimulator(ctx, t, s, recording.Namespace, Options{
		Durations:   replayDurations(),
		Clock:       clock,
		ShuffleSeed: scenario.seed,
		Hardware:    recordedHardware(t, recording),
	})
	world := &world{client: s.client, namespace: recording.Namespace, shape: s.shape, kubeconfig: s.kubeconfig, uids: map[string]string{}}
	recorder, err := trace.NewRecorder(ctx, s.client, recording.Namespace,
		s.shape.gvk(kindMachine), s.shape.gvk(kindCluster), bmov1alpha1.GroupVersion.WithKind("BareMetalHost"),
		corev1.SchemeGroupVersion.WithKind("Node"))
	g.Expect(err).NotTo(HaveOccurred())
	r := &replay{
		T: t, scenario: scenario, recording: recording, world: world, client: s.client, recorder: recorder,
		faults: simulator.Faults(), clock: clock, shape: s.shape, wanted: map[string]map[string]int{}, working: map[string]bool{},
	}
	r.run(ctx)
	r.settle()
	r.compare()
}

// replayDurations makes every operation immediate, and the timers those of the real managers: the replay's clock follows the
// recording, and nudges stand in for CAPM3's timers.
func replayDurations() Durations {
	return Durations{
		Register: 1, Inspect: 1, Prepare: 1, Provision: 1, Deprovision: 1,
		ErrorRetry: time.Minute, HostRetry: time.Hour, NodePoll: time.Hour,
	}
}

// recordedHardware lets inspection find what the recording's fixture found.
func recordedHardware(t *testing.T, recording *trace.Recording) func(*bmov1alpha1.BareMetalHost) *bmov1alpha1.HardwareDetails {
	t.Helper()
	found := map[string]*bmov1alpha1.HardwareDetails{}
	for i := range recording.Transitions {
		fields := map[string]any{}
		for path, value := range recording.Transitions[i].Set {
			if inner, ok := strings.CutPrefix(path, "status.hardware."); ok {
				NewWithT(t).Expect(unstructured.SetNestedField(fields, value, trace.SplitPath(inner)...)).To(Succeed())
			}
		}
		if recording.Transitions[i].Kind() != "BareMetalHost" || len(fields) == 0 {
			continue
		}
		data, err := json.Marshal(fields)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		details := &bmov1alpha1.HardwareDetails{}
		NewWithT(t).Expect(json.Unmarshal(data, details)).To(Succeed())
		found[recording.Transitions[i].Name()] = details
	}
	return func(host *bmov1alpha1.BareMetalHost) *bmov1alpha1.HardwareDetails { return found[host.Name] }
}
