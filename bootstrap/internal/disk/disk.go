// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// maxListed bounds how many disks a message names.
const maxListed = 8

// Hints are root device hints and where they come from.
type Hints struct {
	bootstrapv1.RootDeviceHints
	// Source names the object and field, for messages.
	Source string
}

// Given reports whether there is any hint.
func (h Hints) Given() bool { return h.RootDeviceHints != bootstrapv1.RootDeviceHints{} }

// HintsFor returns the hints for a Machine's host: those of its config or else those of its BareMetalHost, which may be nil.
func HintsFor(config *bootstrapv1.OpenshiftAssistedConfig, host *bmov1alpha1.BareMetalHost) Hints {
	hints := Hints{RootDeviceHints: config.Spec.Installation.RootDeviceHints,
		Source: fmt.Sprintf("spec.installation.rootDeviceHints of OpenshiftAssistedConfig %s", config.Name)}
	if hints.Given() || host == nil || host.Spec.RootDeviceHints == nil {
		return hints
	}
	h := host.Spec.RootDeviceHints
	return Hints{
		RootDeviceHints: bootstrapv1.RootDeviceHints{
			DeviceName: h.DeviceName, HCTL: h.HCTL, Model: h.Model, Vendor: h.Vendor, SerialNumber: h.SerialNumber,
			MinSizeGigabytes: int32(min(h.MinSizeGigabytes, math.MaxInt32)),
			WWN:              h.WWN, WWNWithExtension: h.WWNWithExtension, WWNVendorExtension: h.WWNVendorExtension, Rotational: h.Rotational,
		},
		Source: "spec.rootDeviceHints of BareMetalHost " + host.Name,
	}
}

// Verdict says which disk the hints choose, or why they choose none.
type Verdict struct {
	// ID is the chosen disk's; empty when there is none.
	ID string
	// Reason is one of the reasons of bootstrapv1.AgentInstalledCondition; empty when a disk was chosen.
	Reason string
	// Message says why none was chosen, naming hints, disks and what to do.
	Message string
}

// Choose finds the disk that meets all hints. Hints that name one disk must not meet several. Hints that describe a kind of disk may: the
// first one by its kernel's name is taken then, as Ironic does.
func Choose(agentName string, disks []assisted.Disk, hints Hints) Verdict {
	var matching, eligible []assisted.Disk
	for _, disk := range disks {
		if !hints.match(disk) {
			continue
		}
		matching = append(matching, disk)
		if e := disk.InstallationEligibility; e == nil || e.Eligible {
			eligible = append(eligible, disk)
		}
	}
	switch {
	case len(matching) == 0:
		return Verdict{Reason: bootstrapv1.InstallationDiskNotFoundReason, Message: fmt.Sprintf(
			"Agent %s has no disk with %s, as %s demands; it has %s: correct the hints", agentName, hints, hints.Source, list(disks))}
	case len(eligible) == 0:
		return Verdict{Reason: bootstrapv1.InstallationDiskNotEligibleReason, Message: fmt.Sprintf(
			"Agent %s: the disks with %s, as %s demands, cannot be installed on: %s", agentName, hints, hints.Source, reasons(matching))}
	case len(eligible) > 1 && hints.nameOne():
		return Verdict{Reason: bootstrapv1.InstallationDiskAmbiguousReason, Message: fmt.Sprintf(
			"Agent %s has %d disks with %s, as %s demands: %s: add hints until one is left", agentName, len(eligible), hints, hints.Source,
			list(eligible),
		)}
	}
	return Verdict{ID: slices.MinFunc(eligible, byKernelName).ID}
}

// Installable reports whether the disk is among those of the inventory and may be installed on.
func Installable(disks []assisted.Disk, id string) bool {
	return slices.ContainsFunc(disks, func(d assisted.Disk) bool {
		return d.ID == id && (d.InstallationEligibility == nil || d.InstallationEligibility.Eligible)
	})
}

// byKernelName puts sdb before sdaa.
func byKernelName(a, b assisted.Disk) int {
	return cmp.Or(cmp.Compare(len(a.Path), len(b.Path)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID))
}

// nameOne reports whether any hint is meant for one disk, rather than for a kind of disk.
func (h Hints) nameOne() bool {
	return h.DeviceName != "" || h.HCTL != "" || h.SerialNumber != "" || h.WWN != "" || h.WWNWithExtension != "" || h.WWNVendorExtension != ""
}

func (h Hints) match(disk assisted.Disk) bool {
	name, extension := splitWWN(disk.WWN)
	whole := name + extension
	rules := []struct{ given, met bool }{
		{h.DeviceName != "", slices.Contains([]string{disk.Path, disk.ByPath, disk.ByID, disk.ID, "/dev/" + disk.Name}, h.DeviceName)},
		{h.HCTL != "", h.HCTL == disk.HCTL},
		{h.Model != "", contains(disk.Model, h.Model)},
		{h.Vendor != "", contains(disk.Vendor, h.Vendor)},
		{h.SerialNumber != "", strings.EqualFold(h.SerialNumber, disk.Serial)},
		{h.MinSizeGigabytes > 0, disk.SizeBytes >= int64(h.MinSizeGigabytes)<<30},
		{h.WWN != "", name != "" && slices.Contains([]string{name, whole}, bareWWN(h.WWN))},
		{h.WWNWithExtension != "", whole != "" && bareWWN(h.WWNWithExtension) == whole},
		{h.WWNVendorExtension != "", extension != "" && bareWWN(h.WWNVendorExtension) == extension},
		{h.Rotational != nil, h.Rotational != nil && *h.Rotational == (disk.DriveType == assisted.DriveTypeHDD)},
	}
	return !slices.ContainsFunc(rules, func(rule struct{ given, met bool }) bool { return rule.given && !rule.met })
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func bareWWN(wwn string) string { return strings.TrimPrefix(strings.ToLower(wwn), "0x") }

// splitWWN takes a World Wide Name apart. A host reports one value: the name and, if the disk has one, the vendor's extension behind it,
// each of 16 hexadecimal digits. Other forms, such as those of NVMe, are whole.
func splitWWN(wwn string) (name, extension string) {
	const digits = 16
	bare := bareWWN(wwn)
	if len(bare) == 2*digits && strings.Trim(bare, "0123456789abcdef") == "" {
		return bare[:digits], bare[digits:]
	}
	return bare, ""
}

// String lists the hints in the order of their declaration.
func (h Hints) String() string {
	var parts []string
	for _, hint := range []struct{ name, value string }{
		{"deviceName", h.DeviceName}, {"hctl", h.HCTL}, {"model", h.Model}, {"vendor", h.Vendor}, {"serialNumber", h.SerialNumber},
		{"wwn", h.WWN}, {"wwnWithExtension", h.WWNWithExtension}, {"wwnVendorExtension", h.WWNVendorExtension},
	} {
		if hint.value != "" {
			parts = append(parts, fmt.Sprintf("%s %q", hint.name, hint.value))
		}
	}
	if h.MinSizeGigabytes > 0 {
		parts = append(parts, fmt.Sprintf("minSizeGigabytes %d", h.MinSizeGigabytes))
	}
	if h.Rotational != nil {
		parts = append(parts, fmt.Sprintf("rotational %t", *h.Rotational))
	}
	return strings.Join(parts, ", ")
}

// list describes disks for a message, in an order that does not change.
func list(disks []assisted.Disk) string {
	if len(disks) == 0 {
		return "no disks"
	}
	sorted := slices.SortedFunc(slices.Values(disks), byKernelName)
	more := ""
	if len(sorted) > maxListed {
		more = fmt.Sprintf(" and %d more", len(sorted)-maxListed)
		sorted = sorted[:maxListed]
	}
	texts := make([]string, len(sorted))
	for i, disk := range sorted {
		texts[i] = describe(disk)
	}
	return strings.Join(texts, ", ") + more
}

func describe(disk assisted.Disk) string {
	parts := []string{fmt.Sprintf("%d GiB", disk.SizeBytes>>30)}
	for _, detail := range []struct{ name, value string }{
		{"", disk.DriveType}, {"", disk.ByPath}, {"hctl ", disk.HCTL}, {"", strings.TrimSpace(disk.Vendor + " " + disk.Model)},
		{"serial ", disk.Serial}, {"wwn ", disk.WWN},
	} {
		if detail.value != "" {
			parts = append(parts, detail.name+detail.value)
		}
	}
	return fmt.Sprintf("%s (%s)", cmp.Or(disk.Path, disk.Name, disk.ID), strings.Join(parts, ", "))
}

// reasons say of each disk why it cannot be installed on.
func reasons(disks []assisted.Disk) string {
	sorted := slices.SortedFunc(slices.Values(disks), byKernelName)
	texts := make([]string, 0, len(sorted))
	for _, disk := range sorted[:min(len(sorted), maxListed)] {
		texts = append(texts, cmp.Or(disk.Path, disk.Name, disk.ID)+": "+strings.Join(disk.InstallationEligibility.NotEligibleReasons, ", "))
	}
	return strings.Join(texts, "; ")
}
