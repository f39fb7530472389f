// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

const (
	// admissionCases is the recording that the webhooks are held to.
	admissionCases = "b-validation"

	// accepted is the recorded result of what nobody refused.
	accepted = "accepted"

	kindHost = "BareMetalHost"

	// admissionNamespace is where the objects of the cases are.
	admissionNamespace = "admission"
)

// recordedCase is what somebody wrote, and what the real API server answered.
type recordedCase struct {
	Case   string         `json:"case"`
	API    string         `json:"api"`
	Kind   string         `json:"kind"`
	Input  map[string]any `json:"input_spec"`
	Result string         `json:"result"`
	// Spec and Status are those of an object that was read.
	Spec   map[string]any `json:"spec"`
	Status map[string]any `json:"status"`
}

// The cases whose objects were updated: of the updates themselves, the recording has names and results.
const (
	updatedTemplate = "v1beta2 Metal3MachineTemplate: url+live-iso, no checksum"
	updatedMachine  = "v1beta2 Metal3Machine: url+live-iso, no checksum"
	updatedHost     = "BareMetalHost: inspectionMode disabled"

	otherURL = "http://192.0.2.250/images/discovery.iso2"
)

// undecided are the recorded cases on which Metal3's webhooks and CRDs have no say, with the reason.
func undecided() map[string]string {
	return map[string]string{
		"create Secret": "Metal3 has no webhook of Secrets",
		readV1Beta2:     "nothing is written: TestReadInBothVersions has it",
		readV1Beta1:     "nothing is written: TestReadInBothVersions has it",
	}
}

// update is a recorded update in other words: the case that made the object, and what changed it before and then.
type update struct {
	of, name     string
	before, then func(*testing.T, *unstructured.Unstructured)
}

// updates are the recorded cases without an input.
func updates() map[string]update {
	const url, providerID = "url", "providerID"
	template, machine, host := []string{"spec", "template", "spec", "image"}, []string{"spec", "image"}, []string{"spec", "bmc", "address"}
	return map[string]update{
		"create Metal3MachineTemplate t (live-iso)": {of: updatedTemplate, name: "t"},
		"UPDATE Metal3MachineTemplate t: change image.url": {
			of: updatedTemplate, name: "t", then: with(otherURL, append(template, url)...),
		},
		"UPDATE Metal3MachineTemplate t: remove image": {of: updatedTemplate, name: "t", then: without(template...)},
		"create Metal3Machine mm (live-iso, no owner)": {of: updatedMachine, name: "mm"},
		"UPDATE Metal3Machine mm: change image.url":    {of: updatedMachine, name: "mm", then: with(otherURL, append(machine, url)...)},
		"UPDATE Metal3Machine mm: remove image":        {of: updatedMachine, name: "mm", then: without(machine...)},
		"UPDATE Metal3Machine mm: set providerID": {
			of: updatedMachine, name: "mm", then: with("metal3://bval/h/mm", "spec", providerID),
		},
		"UPDATE Metal3Machine mm: change providerID": {
			of: updatedMachine, name: "mm",
			before: with("metal3://bval/h/mm", "spec", providerID), then: with("metal3://bval/h2/mm", "spec", providerID),
		},
		"UPDATE Metal3Machine mm: hostSelector": {
			of: updatedMachine, name: "mm", then: with("y", "spec", "hostSelector", "matchLabels", "x"),
		},
		"create BareMetalHost": {of: updatedHost, name: "hh"},
		"UPDATE BareMetalHost hh: change bmc.address while available": {
			of: updatedHost, name: "hh", before: inState(bmov1alpha1.StateAvailable), then: with("redfish://192.0.2.78/1", host...),
		},
		"UPDATE BareMetalHost hh: change bootMACAddress": {
			of: updatedHost, name: "hh", before: inState(bmov1alpha1.StateAvailable), then: with("52:54:00:00:00:4e", "spec", "bootMACAddress"),
		},
	}
}

func with(value any, path ...string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		NewWithT(t).Expect(unstructured.SetNestedField(object.Object, value, path...)).To(Succeed())
	}
}

func without(path ...string) func(*testing.T, *unstructured.Unstructured) {
	return func(_ *testing.T, object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, path...)
	}
}

func inState(state bmov1alpha1.ProvisioningState) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&bmov1alpha1.BareMetalHostStatus{
			OperationalStatus: bmov1alpha1.OperationalStatusOK, Provisioning: bmov1alpha1.ProvisionStatus{State: state},
		})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		with(status, "status")(t, object)
	}
}

// recordedCases returns the cases by their names.
func recordedCases(t *testing.T) map[string]recordedCase {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join("testdata", admissionCases+".yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	data, err = yaml.YAMLToJSON(data)
	g.Expect(err).NotTo(HaveOccurred())
	recording := map[string]any{} // Not the type of a case: its numbers would become floats.
	g.Expect(utiljson.Unmarshal(data, &recording)).To(Succeed())
	list, ok := recording["cases"].([]any)
	g.Expect(ok).To(BeTrue())
	cases := map[string]recordedCase{}
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		g.Expect(ok).To(BeTrue())
		recorded := recordedCase{}
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &recorded)).To(Succeed())
		cases[recorded.Case] = recorded
	}
	g.Expect(cases).To(HaveLen(105), "the cases have different names")
	return cases
}

// objectOf returns the object that a case made.
func objectOf(recorded recordedCase, name string) *unstructured.Unstructured {
	group := infrastructureGroup
	if recorded.Kind == kindHost {
		group = bmov1alpha1.GroupVersion.Group
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(recorded.Input)}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: recorded.API, Kind: recorded.Kind})
	object.SetNamespace(admissionNamespace)
	object.SetName(name)
	return object
}

// decider answers who wants to create an object, or to change the one that was there before, in the words of kubectl.
type decider func(t *testing.T, before, after *unstructured.Unstructured) string

// expectRecorded asks about every recorded case but those that are left out, with a reason.
func expectRecorded(t *testing.T, decide decider, leftOut map[string]string) {
	t.Helper()
	cases := recordedCases(t)
	for name, reason := range leftOut {
		NewWithT(t).Expect(cases).To(HaveKey(name))
		NewWithT(t).Expect(reason).NotTo(BeEmpty(), name)
	}
	for name, update := range updates() {
		NewWithT(t).Expect(cases).To(HaveKey(name))
		NewWithT(t).Expect(cases).To(HaveKey(update.of))
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if _, left := leftOut[name]; left {
			continue
		}
		t.Run(name, func(t *testing.T) {
			before, after := writtenIn(t, cases, name)
			NewWithT(t).Expect(decide(t, before, after)).To(Equal(recordedAnswer(cases[name].Result)))
		})
	}
}

// writtenIn returns what is written in a case, and what was there before; nil when it was created.
func writtenIn(t *testing.T, cases map[string]recordedCase, name string) (before, after *unstructured.Unstructured) {
	t.Helper()
	if cases[name].Kind != "" {
		return nil, objectOf(cases[name], "x")
	}
	update, known := updates()[name]
	NewWithT(t).Expect(known).To(BeTrue(), "what is written in this case is neither recorded nor known")
	object := objectOf(cases[update.of], update.name)
	if update.then == nil {
		return nil, object
	}
	if update.before != nil {
		update.before(t, object)
	}
	after = object.DeepCopy()
	update.then(t, after)
	return object, after
}

// besideAnswer is what kubectl printed around an answer: the warning of an old version, and where it read the object.
var besideAnswer = regexp.MustCompile(`^REJECTED: |Warning: \S+ \S+ is deprecated; use \S+ \S+ |error when creating "STDIN": `)

func recordedAnswer(result string) string { return besideAnswer.ReplaceAllString(result, "") }

// asKubectl is what kubectl prints of an answer, in one line.
func asKubectl(err error) string {
	if err == nil {
		return accepted
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err.Error()
	}
	status := answer.Status()
	if status.Reason != metav1.StatusReasonInvalid || status.Details == nil {
		return fmt.Sprintf("Error from server (%s): %s", status.Reason, status.Message)
	}
	causes := make([]string, len(status.Details.Causes))
	for i, cause := range status.Details.Causes {
		causes[i] = cause.Field + ": " + cause.Message
	}
	text := fmt.Sprintf("The %s %q is invalid: ", status.Details.Kind, status.Details.Name)
	if len(causes) > 1 {
		return text + " * " + strings.Join(causes, " * ")
	}
	return text + strings.Join(causes, "")
}

// TestRecordedAdmission asks the webhooks themselves, behind the schemas of CAPM3's CRDs.
func TestRecordedAdmission(t *testing.T) {
	leftOut := undecided()
	for _, name := range []string{"no bootMACAddress", `image format ""`, "bad mac"} {
		leftOut["BareMetalHost: "+name] = "the schema refuses it, which only an API server has: it is made from Go types"
	}
	schemas := capm3Schemas(t)
	expectRecorded(t, func(t *testing.T, before, after *unstructured.Unstructured) string {
		t.Helper()
		if crd, known := schemas[after.GroupVersionKind()]; known {
			crd.complete(after)
			if after.GetKind() == kindCluster {
				setDefaultPort(after)
			}
			if err := crd.check(after); err != nil {
				return asKubectl(err)
			}
		}
		return asKubectl(askHooks(t, before, after))
	}, leftOut)
}

// askHooks asks the webhooks that the API server would ask, and returns what it would answer.
func askHooks(t *testing.T, before, after *unstructured.Unstructured) error {
	t.Helper()
	g := NewWithT(t)
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(t, after)}}
	if before != nil {
		req.Operation, req.OldObject = admissionv1.Update, raw(t, before)
	}
	asked := 0
	for _, hook := range slices.Concat(capm3Hooks(), bmoHooks()) {
		gvk := after.GroupVersionKind()
		if hook.group != gvk.Group || hook.resource != strings.ToLower(gvk.Kind)+"s" || !slices.Contains(hook.versions, gvk.Version) {
			continue
		}
		asked++
		if response := hook.answer(req); !response.Allowed {
			status := *response.Result
			status.Message = fmt.Sprintf("admission webhook %q denied the request: %s", hook.name, status.Message)
			return &apierrors.StatusError{ErrStatus: status}
		}
	}
	g.Expect(asked).To(Equal(1), "every kind has one webhook")
	return nil
}

func raw(t *testing.T, object *unstructured.Unstructured) runtime.RawExtension {
	t.Helper()
	data, err := json.Marshal(object)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: data}
}

// TestHostMayChange: a host that is being registered or detached may get another BMC, and a MAC address may be written in capitals.
func TestHostMayChange(t *testing.T) {
	host := func(address, mac string, status bmov1alpha1.BareMetalHostStatus) *bmov1alpha1.BareMetalHost {
		return &bmov1alpha1.BareMetalHost{
			Spec:   bmov1alpha1.BareMetalHostSpec{BootMACAddress: mac, BMC: bmov1alpha1.BMCDetails{Address: address}},
			Status: status,
		}
	}
	g := NewWithT(t)
	for _, status := range []bmov1alpha1.BareMetalHostStatus{
		{Provisioning: bmov1alpha1.ProvisionStatus{State: bmov1alpha1.StateRegistering}},
		{OperationalStatus: bmov1alpha1.OperationalStatusDetached},
	} {
		before, after := host("192.0.2.1", "52:54:00:00:00:aa", status), host("192.0.2.2:623", "52:54:00:00:00:AA", status)
		g.Expect(append(hostReasons(after), hostChangeReasons(before, after)...)).To(BeEmpty())
	}
	g.Expect(hostReasons(host("redfish-virtualmedia+https://192.0.2.1/1", "", bmov1alpha1.BareMetalHostStatus{}))).To(BeEmpty())
	g.Expect(hostReasons(host("host:623", "", bmov1alpha1.BareMetalHostStatus{}))).To(HaveLen(1), "a name and a port are a scheme")
}
