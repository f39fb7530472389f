// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machine(version string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": InfrastructureGroup + "/" + version, "kind": MachineKind,
		"spec": map[string]any{"image": map[string]any{"url": "http://placeholder.invalid/x", "checksum": "abc"}},
	}}
	m.SetNamespace("ns")
	m.SetName("m-0")
	return m
}

// TestSetLiveISO covers both shapes of the API (DESIGN D2, METAL3 M3-81).
func TestSetLiveISO(t *testing.T) {
	for version, want := range map[string]map[string]any{
		"v1beta1": {"url": "http://iso", "format": "live-iso", "checksum": ""},
		"v1beta2": {"url": "http://iso", "diskFormat": "live-iso"},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			m := machine(version)
			g.Expect(HasLiveISO(m, "http://iso")).To(BeFalse())
			g.Expect(SetLiveISO(m, "http://iso")).To(Succeed())
			image, _, _ := unstructured.NestedMap(m.Object, "spec", "image")
			g.Expect(image).To(Equal(want), "the placeholder's checksum is gone")
			g.Expect(HasLiveISO(m, "http://iso")).To(BeTrue())
		})
	}
	g := NewWithT(t)
	other := machine("v1beta1")
	other.SetKind("DockerMachine")
	g.Expect(SetLiveISO(other, "http://iso")).To(MatchError(ErrNotSupported))
}

// TestHostOf: the annotation and the host's reference have to agree (METAL3 M3-13, M3-14, M3-70, M3-82).
func TestHostOf(t *testing.T) {
	taken, free := consumed(), bmov1alpha1.BareMetalHost{}
	free.Namespace, free.Name = "ns", "host-1"
	hosts := []bmov1alpha1.BareMetalHost{free, taken}
	for name, tt := range map[string]struct{ annotation, host string }{
		"no annotation yet":            {"", ""},
		"both agree":                   {"ns/host-0", "host-0"},
		"another namespace is ignored": {"elsewhere/host-0", "host-0"},
		"a preset annotation":          {"ns/host-1", ""},
		"a host that is gone":          {"ns/host-9", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			host := HostOf(annotated(tt.annotation), hosts)
			if tt.host == "" {
				g.Expect(host).To(BeNil())
			} else {
				g.Expect(host.Name).To(Equal(tt.host))
			}
		})
	}
}

// consumed is a host that refers to the Metal3Machine.
func consumed() bmov1alpha1.BareMetalHost {
	host := bmov1alpha1.BareMetalHost{}
	host.Namespace, host.Name = "ns", "host-0"
	host.Spec.ConsumerRef = &corev1.ObjectReference{
		APIVersion: InfrastructureGroup + "/v1beta2", Kind: MachineKind, Namespace: "ns", Name: "m-0",
	}
	return host
}

// annotated is a Metal3Machine that names a host, or none.
func annotated(host string) *unstructured.Unstructured {
	m := machine("v1beta1")
	if host != "" {
		m.SetAnnotations(map[string]string{HostAnnotation: host})
	}
	return m
}

// TestTaken: a host that was pinned gets its image later, and one that Metal3 chose has it from then on (METAL3 M3-12, M3-14, M3-23).
func TestTaken(t *testing.T) {
	image := func(h *bmov1alpha1.BareMetalHost) { h.Spec.Image = &bmov1alpha1.Image{URL: "http://iso"} }
	for name, tt := range map[string]struct {
		annotation string
		change     func(*bmov1alpha1.BareMetalHost)
		taken      bool
		hasImage   bool
	}{
		"a free host":                           {change: func(h *bmov1alpha1.BareMetalHost) { h.Spec.ConsumerRef = nil }},
		"a free host that has an image":         {change: func(h *bmov1alpha1.BareMetalHost) { image(h); h.Spec.ConsumerRef = nil }},
		"another's host":                        {change: func(h *bmov1alpha1.BareMetalHost) { image(h); h.Spec.ConsumerRef.Name = "m-9" }},
		"a user pinned a host":                  {change: func(*bmov1alpha1.BareMetalHost) {}},
		"Metal3 chose a host":                   {change: image, taken: true, hasImage: true},
		"Metal3 chose a host, and annotated it": {annotation: "ns/host-0", change: image, taken: true, hasImage: true},
		"a custom deployment": {
			change: func(h *bmov1alpha1.BareMetalHost) { h.Spec.CustomDeploy = &bmov1alpha1.CustomDeploy{Method: "x"} }, taken: true, hasImage: true,
		},
		"a preset annotation": {annotation: "ns/host-1", change: func(*bmov1alpha1.BareMetalHost) {}, taken: true},
		"a host that is gone": {annotation: "ns/host-9", change: func(h *bmov1alpha1.BareMetalHost) { h.Spec.ConsumerRef = nil }, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			host := consumed()
			tt.change(&host)
			m, hosts := annotated(tt.annotation), []bmov1alpha1.BareMetalHost{{}, host}
			g.Expect(Taken(m, hosts)).To(Equal(tt.taken))
			g.Expect(ImageCopied(m, hosts)).To(Equal(tt.hasImage))
		})
	}
}

func TestNormalizeSerial(t *testing.T) {
	for in, want := range map[string]string{
		" SN-001 ": "sn-001", "": "", "To be filled by O.E.M.": "", "0000000": "", "Default string": "", "N/A": "", "FFFFFFFF": "",
		"0001": "0001", "(none)": "", "Unspecified Base Board Serial Number": "", "Unspecified System Serial Number": "",
	} {
		NewWithT(t).Expect(NormalizeSerial(in)).To(Equal(want), in)
	}
}

func TestError(t *testing.T) {
	g := NewWithT(t)
	host := &bmov1alpha1.BareMetalHost{}
	host.Name = "host-0"
	g.Expect(Error(host)).To(BeEmpty())
	host.Status.Provisioning.State = bmov1alpha1.StateAvailable
	host.Status.ErrorType, host.Status.ErrorMessage = bmov1alpha1.ProvisioningError, "retry limit reached"
	g.Expect(Error(host)).To(Equal("BareMetalHost host-0 in state available reports provisioning error: retry limit reached"))

	const begin = "BareMetalHost host-0 in state available reports provisioning error: "
	for text, want := range map[string]string{
		"Validation of image href " + tokenURL + " failed":               "Validation of image href http://images/[redacted] failed",
		"Image provisioning failed (url: " + tokenURL + ", checksum: x)": "Image provisioning failed (url: http://images/[redacted] checksum: x)",
	} {
		host.Status.ErrorMessage = text
		g.Expect(Error(host)).To(Equal(begin+want), "who reads it could boot into the cluster")
	}
	host.Status.ErrorType, host.Status.ErrorMessage = "", ""
	host.Status.Conditions = []metav1.Condition{{Type: bmov1alpha1.ManageableCondition, Status: metav1.ConditionFalse}}
	host.Status.Conditions[0].Reason, host.Status.Conditions[0].Message = bmov1alpha1.PowerFailureReason, "media "+tokenURL
	g.Expect(Error(host)).To(HaveSuffix(": media http://images/[redacted]"))
}

// tokenURL lets its reader boot into a cluster.
const tokenURL = "http://images/byapikey/eyJhbGci.eyJzdWIi.sig/4.20/x86_64/minimal.iso"

func TestCRDs(t *testing.T) {
	g := NewWithT(t)
	reference := clusterv1.ContractVersionedObjectReference{APIGroup: InfrastructureGroup, Kind: MachineKind, Name: "m-0"}
	g.Expect(IsMachineRef(reference)).To(BeTrue())
	g.Expect(CRDs(reference)).To(Equal([]string{"metal3machines.infrastructure.cluster.x-k8s.io", "baremetalhosts.metal3.io"}))
	template := reference
	template.Kind = "Metal3MachineTemplate"
	g.Expect(CRDs(template)).To(Equal(CRDs(reference)))
	g.Expect(CRDs(clusterv1.ContractVersionedObjectReference{APIGroup: InfrastructureGroup, Kind: "DevMachine"})).To(BeEmpty())
	g.Expect(IsMachineRef(template)).To(BeFalse())
}

// TestAssociationFailure: AssociationFailure finds the message of Metal3 in the conditions of every API version of a Metal3Machine, and
// none while the Metal3Machine waits for its bootstrap data (METAL3 M3-11, M3-81).
func TestAssociationFailure(t *testing.T) {
	const none = "no available host found. Requeuing. Object will be requeued after 30s"
	condition := func(kind, status, reason string) []any {
		return []any{map[string]any{"type": kind, "status": status, "reason": reason, "message": none}}
	}
	tests := map[string]struct {
		conditions []any
		path       []string
		failure    string
	}{
		"v1beta2": {
			conditions: condition("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"), path: []string{"status", "conditions"},
			failure: "no available host found",
		},
		"v1beta2 conditions of v1beta1": {
			conditions: condition("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"),
			path:       []string{"status", "v1beta2", "conditions"}, failure: "no available host found",
		},
		"v1beta1 alone": {
			conditions: condition("AssociateBMH", "False", "AssociateBMHFailed"), path: []string{"status", "conditions"},
			failure: "no available host found",
		},
		"it waits": {
			conditions: condition("AssociateBareMetalHost", "False", "WaitingForBootstrapData"), path: []string{"status", "conditions"},
		},
		"a host was chosen": {
			conditions: condition("AssociateBareMetalHost", "True", "AssociateBareMetalHostSuccess"), path: []string{"status", "conditions"},
		},
		"nothing is said": {path: []string{"status", "conditions"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := machine("v1beta2")
			g.Expect(unstructured.SetNestedSlice(m.Object, tt.conditions, tt.path...)).To(Succeed())
			g.Expect(AssociationFailure(m)).To(Equal(tt.failure))
		})
	}
}

// TestReduceHost: what is read of inspected hardware stays, and all else of a host.
func TestReduceHost(t *testing.T) {
	g := NewWithT(t)
	host := &bmov1alpha1.BareMetalHost{}
	host.Spec.BootMACAddress = "aa:00"
	host.Status.Provisioning.State = bmov1alpha1.StateProvisioned
	ReduceHost(host)
	g.Expect(host.Status.HardwareDetails).To(BeNil(), "nothing was inspected")
	host.Status.LastUpdated = ptr.To(metav1.Now())
	host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{
		SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: "SN-1", Manufacturer: "x"}, Hostname: "x",
		NIC:     []bmov1alpha1.NIC{{Name: "eno1", MAC: "AA:01", Model: "x", SpeedGbps: 10}},
		Storage: []bmov1alpha1.Storage{{Name: "/dev/sda"}},
	}
	macs, nics, serial := InspectedMACs(host), NICs(host), SerialNumber(host)
	ReduceHost(host)
	g.Expect(InspectedMACs(host)).To(Equal(macs))
	g.Expect(NICs(host)).To(Equal(nics))
	g.Expect(SerialNumber(host)).To(Equal(serial))
	g.Expect(host.Status.HardwareDetails).To(Equal(&bmov1alpha1.HardwareDetails{
		SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: "SN-1"}, NIC: []bmov1alpha1.NIC{{Name: "eno1", MAC: "AA:01"}},
	}))
	g.Expect(host.Status.LastUpdated).To(BeNil())
	g.Expect(Provisioned(host)).To(BeTrue())
}
