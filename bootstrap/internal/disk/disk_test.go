// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// inventory has two SSDs of one model, a large spinning disk, an NVMe disk, and a USB stick that nothing may be installed on.
func inventory() []assisted.Disk {
	return []assisted.Disk{
		{
			ID: "/dev/disk/by-id/wwn-0x2", ByID: "/dev/disk/by-id/wwn-0x2", Name: "sdb", Path: "/dev/sdb",
			ByPath: "/dev/disk/by-path/pci-0000:00:1f.2-ata-2", HCTL: "1:0:0:0", Vendor: "ATA", Model: "SAMSUNG MZ7LH480",
			Serial: "S2", WWN: "0x5002538e00000002", SizeBytes: 480 << 30, DriveType: "SSD",
		},
		{
			ID: "/dev/disk/by-id/wwn-0x1", ByID: "/dev/disk/by-id/wwn-0x1", Name: "sda",
			Path: "/dev/sda", ByPath: "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
			HCTL: "0:0:0:0", Vendor: "ATA", Model: "SAMSUNG MZ7LH480",
			Serial: "S1", WWN: "0x5002538e00000001", SizeBytes: 480 << 30,
			DriveType: "SSD", InstallationEligibility: &assisted.InstallationEligibility{Eligible: true},
		},
		{ID: "/dev/disk/by-id/wwn-0x3", Name: "sdc", Path: "/dev/sdc", HCTL: "2:0:0:0", Vendor: "HP", Model: "LOGICAL VOLUME", Serial: "S3",
			WWN: "0x600508b1001c4b31a1b2c3d4e5f60718", SizeBytes: 4000 << 30, DriveType: assisted.DriveTypeHDD},
		{
			ID: "/dev/disk/by-id/wwn-eui.0025385b71b0", Name: "nvme0n1", Path: "/dev/nvme0n1", Model: "INTEL SSDPE2",
			Serial: "S4", WWN: "eui.0025385b71b0", SizeBytes: 960 << 30, DriveType: "SSD",
		},
		{ID: "/dev/sdd", Name: "sdd", Path: "/dev/sdd", Vendor: "USB", Model: "Stick", SizeBytes: 8 << 30, DriveType: "SSD",
			InstallationEligibility: &assisted.InstallationEligibility{NotEligibleReasons: []string{"Disk is removable"}}},
	}
}

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		hints  bootstrapv1.RootDeviceHints
		id     string
		reason string
		text   string
	}{
		"kernel's name": {hints: bootstrapv1.RootDeviceHints{DeviceName: "/dev/sdb"}, id: "/dev/disk/by-id/wwn-0x2"},
		"link by path": {
			hints: bootstrapv1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"}, id: "/dev/disk/by-id/wwn-0x1",
		},
		"link by ID": {
			hints: bootstrapv1.RootDeviceHints{DeviceName: "/dev/disk/by-id/wwn-0x3"}, id: "/dev/disk/by-id/wwn-0x3",
		},
		"a name is no part of a name": {
			hints: bootstrapv1.RootDeviceHints{DeviceName: "/dev/sd"}, reason: bootstrapv1.InstallationDiskNotFoundReason,
			text: `no disk with deviceName "/dev/sd", as here demands`,
		},
		"SCSI address": {hints: bootstrapv1.RootDeviceHints{HCTL: "1:0:0:0"}, id: "/dev/disk/by-id/wwn-0x2"},
		"model is a part, in any case": {
			hints: bootstrapv1.RootDeviceHints{Model: "ssdpe2"}, id: "/dev/disk/by-id/wwn-eui.0025385b71b0",
		},
		"vendor is a part": {hints: bootstrapv1.RootDeviceHints{Vendor: "H"}, id: "/dev/disk/by-id/wwn-0x3"},
		"serial number":    {hints: bootstrapv1.RootDeviceHints{SerialNumber: "s2"}, id: "/dev/disk/by-id/wwn-0x2"},
		"a serial number is whole": {
			hints: bootstrapv1.RootDeviceHints{SerialNumber: "S"}, reason: bootstrapv1.InstallationDiskNotFoundReason,
			text: "/dev/sdc (4000 GiB, HDD, hctl 2:0:0:0, HP LOGICAL VOLUME, serial S3, wwn 0x600508b1001c4b31a1b2c3d4e5f60718)",
		},
		"WWN": {hints: bootstrapv1.RootDeviceHints{WWN: "0x5002538E00000001"}, id: "/dev/disk/by-id/wwn-0x1"},
		"WWN of NVMe": {
			hints: bootstrapv1.RootDeviceHints{WWN: "eui.0025385b71b0"}, id: "/dev/disk/by-id/wwn-eui.0025385b71b0",
		},
		"WWN without its extension": {hints: bootstrapv1.RootDeviceHints{WWN: "0x600508b1001c4b31"}, id: "/dev/disk/by-id/wwn-0x3"},
		"WWN with its extension": {
			hints: bootstrapv1.RootDeviceHints{WWN: "0x600508b1001c4b31a1b2c3d4e5f60718"}, id: "/dev/disk/by-id/wwn-0x3",
		},
		"WWN with extension": {
			hints: bootstrapv1.RootDeviceHints{WWNWithExtension: "0x600508b1001c4b31a1b2c3d4e5f60718"}, id: "/dev/disk/by-id/wwn-0x3",
		},
		"WWN lacks its extension": {
			hints: bootstrapv1.RootDeviceHints{WWNWithExtension: "0x600508b1001c4b31"}, reason: bootstrapv1.InstallationDiskNotFoundReason,
		},
		"extension": {
			hints: bootstrapv1.RootDeviceHints{WWNVendorExtension: "0xa1b2c3d4e5f60718"}, id: "/dev/disk/by-id/wwn-0x3",
		},
		"smallest size": {hints: bootstrapv1.RootDeviceHints{MinSizeGigabytes: 4000}, id: "/dev/disk/by-id/wwn-0x3"},
		"too large a size": {
			hints: bootstrapv1.RootDeviceHints{MinSizeGigabytes: 4001}, reason: bootstrapv1.InstallationDiskNotFoundReason,
			text: "minSizeGigabytes 4001",
		},
		"rotational":                            {hints: bootstrapv1.RootDeviceHints{Rotational: ptr.To(true)}, id: "/dev/disk/by-id/wwn-0x3"},
		"a kind of disk: the first by its name": {hints: bootstrapv1.RootDeviceHints{Rotational: ptr.To(false)}, id: "/dev/disk/by-id/wwn-0x1"},
		"all hints are met by one disk": {
			hints: bootstrapv1.RootDeviceHints{Rotational: ptr.To(false), MinSizeGigabytes: 900}, id: "/dev/disk/by-id/wwn-eui.0025385b71b0",
		},
		"hints of two disks": {
			hints: bootstrapv1.RootDeviceHints{DeviceName: "/dev/sda", SerialNumber: "S2"}, reason: bootstrapv1.InstallationDiskNotFoundReason,
			text: `deviceName "/dev/sda", serialNumber "S2"`,
		},
		"nothing may be installed on it": {
			hints: bootstrapv1.RootDeviceHints{DeviceName: "/dev/sdd"}, reason: bootstrapv1.InstallationDiskNotEligibleReason,
			text: "/dev/sdd: Disk is removable",
		},
		"among several that may be installed on": {
			hints: bootstrapv1.RootDeviceHints{Model: "s", MinSizeGigabytes: 1}, id: "/dev/disk/by-id/wwn-0x1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			verdict := Choose("a-0", inventory(), Hints{RootDeviceHints: tt.hints, Source: "here"})
			g.Expect(verdict.ID).To(Equal(tt.id), verdict.Message)
			g.Expect(verdict.Reason).To(Equal(tt.reason), verdict.Message)
			g.Expect(verdict.Message).To(ContainSubstring(tt.text))
		})
	}
}

// TestChooseAmong covers inventories other than that of TestChoose.
func TestChooseAmong(t *testing.T) {
	g := NewWithT(t)
	twins := inventory()[:2]
	twins[0].Serial = twins[1].Serial
	verdict := Choose("a-0", twins, Hints{RootDeviceHints: bootstrapv1.RootDeviceHints{SerialNumber: "S1"}, Source: "here"})
	g.Expect(verdict.Reason).To(Equal(bootstrapv1.InstallationDiskAmbiguousReason))
	g.Expect(verdict.Message).To(ContainSubstring("has 2 disks with serialNumber \"S1\""))

	twins[0].InstallationEligibility = &assisted.InstallationEligibility{}
	verdict = Choose("a-0", twins, Hints{RootDeviceHints: bootstrapv1.RootDeviceHints{SerialNumber: "S1"}})
	g.Expect(verdict.ID).To(Equal("/dev/disk/by-id/wwn-0x1"), "a path of a disk that cannot be installed on is not in the way")

	verdict = Choose("a-0", nil, Hints{RootDeviceHints: bootstrapv1.RootDeviceHints{HCTL: "0:0:0:0"}})
	g.Expect(verdict.Message).To(ContainSubstring("it has no disks"))

	many := make([]assisted.Disk, 10)
	verdict = Choose("a-0", many, Hints{RootDeviceHints: bootstrapv1.RootDeviceHints{HCTL: "0:0:0:0"}})
	g.Expect(verdict.Message).To(ContainSubstring("and 2 more"))
}

func TestHintsFor(t *testing.T) {
	g := NewWithT(t)
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	config.Name = "m-0"
	g.Expect(HintsFor(config, nil).Given()).To(BeFalse())
	host := &bmov1alpha1.BareMetalHost{}
	host.Name = "host-0"
	g.Expect(HintsFor(config, host).Given()).To(BeFalse())
	host.Spec.RootDeviceHints = &bmov1alpha1.RootDeviceHints{}
	g.Expect(HintsFor(config, host).Given()).To(BeFalse(), "no hint is no demand")

	host.Spec.RootDeviceHints = &bmov1alpha1.RootDeviceHints{
		DeviceName: "d", HCTL: "h", Model: "m", Vendor: "v", SerialNumber: "s",
		MinSizeGigabytes: 7, WWN: "w", WWNWithExtension: "we", WWNVendorExtension: "e", Rotational: ptr.To(false),
	}
	g.Expect(HintsFor(config, host)).
		To(Equal(Hints{Source: "spec.rootDeviceHints of BareMetalHost host-0", RootDeviceHints: bootstrapv1.RootDeviceHints{
			DeviceName: "d", HCTL: "h", Model: "m", Vendor: "v", SerialNumber: "s",
			MinSizeGigabytes: 7, WWN: "w", WWNWithExtension: "we", WWNVendorExtension: "e", Rotational: ptr.To(false),
		}}))

	config.Spec.Installation.RootDeviceHints.Model = "other"
	hints := HintsFor(config, host)
	g.Expect(hints.RootDeviceHints).To(Equal(bootstrapv1.RootDeviceHints{Model: "other"}), "the config's hints win, all of them")
	g.Expect(hints.Source).To(ContainSubstring("OpenshiftAssistedConfig m-0"))
}

func TestInstallable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Installable(inventory(), "/dev/disk/by-id/wwn-0x1")).To(BeTrue())
	g.Expect(Installable(inventory(), "/dev/disk/by-id/wwn-0x3")).To(BeTrue(), "the service did not say")
	g.Expect(Installable(inventory(), "/dev/sdd")).To(BeFalse())
	g.Expect(Installable(inventory(), "/dev/sde")).To(BeFalse())
}
