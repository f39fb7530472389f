// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capi-openshift/agent-providers/internal/redact"
)

// placeholderSerials are serial numbers that vendors ship for "none", in lower case. They identify nothing.
var placeholderSerials = []string{
	"", "0", "none", "n/a", "na", "null", "unknown", "unspecified", "not specified", "not available", "default string",
	"to be filled by o.e.m.", "system serial number", "chassis serial number", "0123456789", "1234567890", "xxxxxxxxxx",
	"(none)", "unspecified system serial number", "unspecified base board serial number",
}

// Consumes reports whether the host is taken by the Metal3Machine. The version in the reference is ignored (METAL3 M3-82).
func Consumes(host *bmov1alpha1.BareMetalHost, machine *unstructured.Unstructured) bool {
	ref := host.Spec.ConsumerRef
	if ref == nil {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == InfrastructureGroup && ref.Kind == MachineKind &&
		ref.Namespace == machine.GetNamespace() && ref.Name == machine.GetName()
}

// HostOf returns the host that the Metal3Machine consumes, or nil. Both sides have to agree: the host carries the reference before the
// annotation exists, and a preset annotation leads to no provisioning (METAL3 M3-13, M3-14; DESIGN D6).
func HostOf(machine *unstructured.Unstructured, hosts []bmov1alpha1.BareMetalHost) *bmov1alpha1.BareMetalHost {
	key, ok := HostKey(machine)
	if !ok {
		return nil
	}
	for i := range hosts {
		if hosts[i].Namespace == key.Namespace && hosts[i].Name == key.Name && Consumes(&hosts[i], machine) {
			return &hosts[i]
		}
	}
	return nil
}

// Taken reports whether the Metal3Machine names a host, or whether its image was copied to one: from then on Metal3 does not look at its
// image any more (METAL3 M3-12, M3-23).
func Taken(machine *unstructured.Unstructured, hosts []bmov1alpha1.BareMetalHost) bool {
	_, named := HostKey(machine)
	return named || ImageCopied(machine, hosts)
}

// ImageCopied reports whether a host that refers to the Metal3Machine has an image, or another way to be deployed: Metal3 gives it no other
// one. A host that a user has pinned refers to the Metal3Machine before it has one (METAL3 M3-14, M3-23).
func ImageCopied(machine *unstructured.Unstructured, hosts []bmov1alpha1.BareMetalHost) bool {
	return slices.ContainsFunc(hosts, func(h bmov1alpha1.BareMetalHost) bool {
		return Consumes(&h, machine) && (h.Spec.Image != nil || h.Spec.CustomDeploy != nil)
	})
}

// BootMAC returns the MAC address that the host boots from, in lower case, or "".
func BootMAC(host *bmov1alpha1.BareMetalHost) string {
	return strings.ToLower(host.Spec.BootMACAddress)
}

// InspectedMACs returns the MAC addresses that inspection found, in lower case and sorted.
func InspectedMACs(host *bmov1alpha1.BareMetalHost) []string {
	if host.Status.HardwareDetails == nil {
		return nil
	}
	var macs []string
	for _, nic := range host.Status.HardwareDetails.NIC {
		if nic.MAC != "" {
			macs = append(macs, strings.ToLower(nic.MAC))
		}
	}
	sort.Strings(macs)
	return slices.Compact(macs)
}

// SerialNumber returns the serial number that inspection found, normalised, or "" when there is no real one.
func SerialNumber(host *bmov1alpha1.BareMetalHost) string {
	if host.Status.HardwareDetails == nil {
		return ""
	}
	return NormalizeSerial(host.Status.HardwareDetails.SystemVendor.SerialNumber)
}

// NormalizeSerial trims and case-folds a serial number and turns vendors' placeholders into "" (DESIGN D6).
func NormalizeSerial(serial string) string {
	s := strings.ToLower(strings.TrimSpace(serial))
	if slices.Contains(placeholderSerials, s) || strings.Trim(s, "0") == "" || strings.Trim(s, "f-") == "" {
		return ""
	}
	return s
}

// Provisioned reports whether the host was booted from its image. For a live ISO that is before its Agent registers (ASSISTED 4).
func Provisioned(host *bmov1alpha1.BareMetalHost) bool {
	return host.Status.Provisioning.State == bmov1alpha1.StateProvisioned
}

// Deprovisioning reports whether baremetal-operator takes from the host what it was provisioned with.
func Deprovisioning(host *bmov1alpha1.BareMetalHost) bool {
	return host.Status.Provisioning.State == bmov1alpha1.StateDeprovisioning
}

// Retries reports whether an operation that has failed is being tried again: the error is cleared meanwhile, and its count is not
// (METAL3 M3-60).
func Retries(host *bmov1alpha1.BareMetalHost) bool {
	return host.Status.ErrorType == "" && host.Status.ErrorCount > 0
}

// HeldBy returns the annotation because of which baremetal-operator does nothing with the host; empty when there is none.
func HeldBy(host *bmov1alpha1.BareMetalHost) string {
	for _, annotation := range []string{bmov1alpha1.PausedAnnotation, bmov1alpha1.DetachedAnnotation} {
		if _, held := host.Annotations[annotation]; held {
			return annotation
		}
	}
	return ""
}

// ProvisioningBegan returns when baremetal-operator last began to provision the host: nothing that registered before can run the image that
// the host was given then. It is zero when the host was never provisioned, and when its status did not come along in a move.
func ProvisioningBegan(host *bmov1alpha1.BareMetalHost) metav1.Time {
	return host.Status.OperationHistory.Provision.Start
}

// ProvisioningEnded returns when baremetal-operator last booted the host from its image. It is zero when it never did, while it provisions
// the host anew, and when its status did not come along in a move.
func ProvisioningEnded(host *bmov1alpha1.BareMetalHost) metav1.Time {
	return host.Status.OperationHistory.Provision.End
}

// Error describes the host's error, or is "" when it has none. After association nobody else reports it (METAL3 M3-61). A BMC that does not
// control the host's power shows in a condition, also while baremetal-operator tries again and status.errorType is empty (METAL3 M3-63).
// Ironic and baremetal-operator quote the URL of the image, which lets its reader boot into the cluster: of URLs the servers are left.
func Error(host *bmov1alpha1.BareMetalHost) string {
	kind, message := string(host.Status.ErrorType), host.Status.ErrorMessage
	if kind == "" && message == "" {
		c := meta.FindStatusCondition(host.Status.Conditions, bmov1alpha1.ManageableCondition)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != bmov1alpha1.PowerFailureReason {
			return ""
		}
		kind, message = string(bmov1alpha1.PowerManagementError), cmp.Or(c.Message, "the BMC does not switch the host's power")
	}
	return fmt.Sprintf(
		"BareMetalHost %s in state %s reports %s: %s", host.Name, state(host), cmp.Or(kind, "error"), redact.URLs(message),
	)
}

// state is the host's provisioning state, in words for a message.
func state(host *bmov1alpha1.BareMetalHost) string {
	if host.Status.Provisioning.State == bmov1alpha1.StateNone {
		return "none"
	}
	return string(host.Status.Provisioning.State)
}

// StateText says in which provisioning state a host is. The states on the way to a booted host have one text: they follow each other within
// minutes, and a condition that named each would be written as often.
func StateText(host *bmov1alpha1.BareMetalHost) string {
	switch host.Status.Provisioning.State {
	case bmov1alpha1.StateAvailable, bmov1alpha1.StateReady, bmov1alpha1.StatePreparing, bmov1alpha1.StateProvisioning:
		return "is being provisioned"
	default:
		return "is in state " + state(host)
	}
}
