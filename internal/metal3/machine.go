// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

const (
	// InfrastructureGroup is the API group of Metal3Machine.
	InfrastructureGroup = "infrastructure.cluster.x-k8s.io"

	// MachineKind is the kind of infrastructure machine that this package knows.
	MachineKind = "Metal3Machine"
	// MachineTemplateKind is the kind of its template.
	MachineTemplateKind = MachineKind + "Template"

	// HostAnnotation, on a Metal3Machine, is <namespace>/<name> of its BareMetalHost (METAL3 M3-70).
	HostAnnotation = "metal3.io/BareMetalHost"

	// UnhealthyAnnotation, on a BareMetalHost, keeps Metal3 from choosing it for another machine (METAL3 M3-67).
	UnhealthyAnnotation = "capm3.metal3.io/unhealthy"

	// NodeUIDLabel, on a Node, is the UID of its BareMetalHost, by which Metal3 finds the Node (METAL3 M3-34).
	NodeUIDLabel = "metal3.io/uuid"

	// CRDMachines is the CRD of Metal3Machine.
	CRDMachines = "metal3machines." + InfrastructureGroup

	// CRDBareMetalHosts is the CRD of BareMetalHost.
	CRDBareMetalHosts = "baremetalhosts.metal3.io"

	// UnlimitedVersion is the API version of Metal3Machine whose image URLs have no limit (METAL3 M3-20).
	UnlimitedVersion = "v1beta1"
	// MaxImageURLLength is the longest image URL that later API versions take.
	MaxImageURLLength = 512

	liveISO = "live-iso"
)

// associationFailures are the conditions of a Metal3Machine that say why Metal3 could choose no BareMetalHost, each with the reason that it
// has then. With another reason, it was too early to choose one (METAL3 M3-11). AssociateBMH is the condition of older releases of Metal3.
var associationFailures = map[string]string{
	"AssociateBareMetalHost": "AssociateBareMetalHostFailed",
	"AssociateBMH":           "AssociateBMHFailed",
}

// machineGroupKind is that of a Metal3Machine.
var machineGroupKind = schema.GroupKind{Group: InfrastructureGroup, Kind: MachineKind}

// ErrNotSupported: the object is no Metal3Machine, so it has no image to hand a live ISO to.
var ErrNotSupported = errors.New("infrastructure machine is not a Metal3Machine")

// IsMachine reports whether the object is a Metal3Machine of any version.
func IsMachine(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == machineGroupKind
}

// IsMachineRef reports whether the reference names a Metal3Machine.
func IsMachineRef(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.GroupKind() == machineGroupKind
}

// IsMachineOrTemplate reports whether the kind is Metal3Machine or Metal3MachineTemplate, the kinds that the roles of the managers name.
func IsMachineOrTemplate(kind schema.GroupKind) bool {
	return kind.Group == InfrastructureGroup && (kind.Kind == MachineKind || kind.Kind == MachineTemplateKind)
}

// CRDs returns the CRDs without which the infrastructure object that the reference names cannot exist or be provisioned; none for
// infrastructure of others.
func CRDs(ref clusterv1.ContractVersionedObjectReference) []string {
	if IsMachineOrTemplate(ref.GroupKind()) {
		return []string{CRDMachines, CRDBareMetalHosts}
	}
	return nil
}

// ImageURL returns the URL of the Metal3Machine's image.
func ImageURL(machine *unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(machine.Object, "spec", "image", "url")
	return url
}

// HasLiveISO reports whether the Metal3Machine's image is this live ISO.
func HasLiveISO(machine *unstructured.Unstructured, url string) bool {
	return ImageURL(machine) == url && IsLiveISO(machine)
}

// IsLiveISO reports whether the Metal3Machine's image is a live ISO, which no user data reaches (METAL3 M3-5).
func IsLiveISO(machine *unstructured.Unstructured) bool {
	format, _, _ := unstructured.NestedString(machine.Object, "spec", "image", formatField(machine))
	return format == liveISO
}

// SetLiveISO makes the live ISO the Metal3Machine's image. What the template's image said besides (a checksum) belongs to another image
// and is dropped. It returns ErrNotSupported for other kinds.
func SetLiveISO(machine *unstructured.Unstructured, url string) error {
	if !IsMachine(machine) {
		return fmt.Errorf("%s %s/%s: %w", machine.GetKind(), machine.GetNamespace(), machine.GetName(), ErrNotSupported)
	}
	image := map[string]any{"url": url, formatField(machine): liveISO}
	if machine.GroupVersionKind().Version == "v1beta1" {
		// The schema of releases that serve nothing else requires a checksum, also where it means nothing.
		image["checksum"] = ""
	}
	return unstructured.SetNestedMap(machine.Object, image, "spec", "image")
}

// formatField is the name of the image's format in the object's API version (METAL3 M3-81).
func formatField(machine *unstructured.Unstructured) string {
	if machine.GroupVersionKind().Version == "v1beta1" {
		return "format"
	}
	return "diskFormat"
}

// AssociationFailure returns why no BareMetalHost could be chosen for the Metal3Machine, without when it is tried again. It is empty when
// one was chosen, or when it is too early to choose one (METAL3 M3-11).
func AssociationFailure(machine *unstructured.Unstructured) string {
	all, err := conditions.UnstructuredGetAll(machine)
	if err != nil {
		return "" // What cannot be read says nothing of the host.
	}
	for _, c := range all {
		if reason := associationFailures[c.Type]; reason != "" && c.Status == metav1.ConditionFalse && c.Reason == reason {
			text, _, _ := strings.Cut(c.Message, ". Requeuing")
			return text
		}
	}
	return ""
}

// HostKey returns the BareMetalHost that the Metal3Machine's annotation names. The host is in the Metal3Machine's namespace, whatever the
// annotation says (METAL3 M3-70). The annotation alone proves nothing: see Consumes.
func HostKey(machine *unstructured.Unstructured) (types.NamespacedName, bool) {
	value := machine.GetAnnotations()[HostAnnotation]
	name := value[strings.LastIndex(value, "/")+1:]
	return types.NamespacedName{Namespace: machine.GetNamespace(), Name: name}, name != ""
}
