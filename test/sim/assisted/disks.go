// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"path"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const (
	defaultDisk = 120 << 30
	byPathLinks = "/dev/disk/by-path/"
)

// inventoryDisks are a host's disks as its agent reports them.
func inventoryDisks(hw *HostHardware) []aiv1.Disk {
	disks := hw.Disks
	if len(disks) == 0 {
		disks = []Disk{{Name: "sda", SizeBytes: defaultDisk}}
	}
	var out []aiv1.Disk
	for _, disk := range disks {
		id := "/dev/disk/by-id/wwn-0x" + strings.ReplaceAll(hostID(*hw), "-", "")[:16]
		if len(out) > 0 {
			id += "-" + disk.Name
		}
		reasons := append([]string{}, disk.NotEligible...)
		out = append(out, aiv1.Disk{
			ID: id, ByID: id, Name: disk.Name, Path: "/dev/" + disk.Name, ByPath: disk.ByPath, HCTL: disk.HCTL, DriveType: cmp.Or(disk.Type, "SSD"),
			Vendor: disk.Vendor, Model: disk.Model, Serial: disk.Serial, WWN: disk.WWN, SizeBytes: disk.SizeBytes,
			InstallationEligibility: &aiv1.InstallationEligibility{Eligible: len(reasons) == 0, NotEligibleReasons: reasons},
		})
	}
	return out
}

// installationDisk is the disk that the host is installed on: the one that was asked for, or the first that may be installed on.
func (h *host) installationDisk() string {
	if h.disk != "" || h.inventory == nil {
		return h.disk
	}
	for _, disk := range inventoryDisks(h.inventory) {
		if disk.InstallationEligibility.Eligible {
			return disk.ID
		}
	}
	return ""
}

// takeDisk reads the disk out of the hardware report. Binding empties the report, on which the service fails before it
// has looked at anything else (ASSISTED 8.1). A request that is taken back changes nothing.
func (b *backend) takeDisk(h *host, spec aiv1.AgentSpec) error {
	if spec.InstallationDiskID == "" && spec.InstallationDiskPath == "" {
		return nil
	}
	const text = "unexpected end of JSON input"
	switch {
	case h.inventory == nil && h.clusterID == "":
		return userError(text)
	case h.inventory == nil:
		return serverError(text)
	}
	for _, disk := range inventoryDisks(h.inventory) {
		if disk.ID != spec.InstallationDiskID && disk.Path != spec.InstallationDiskPath || !disk.InstallationEligibility.Eligible {
			continue
		}
		if h.disk != disk.ID {
			h.disk = disk.ID
			b.touchHost(h)
		}
		return nil
	}
	return userError("Requested installation disk is not part of the host's valid disks")
}

// diskOf derives a disk from what inspection found. Inspection calls disks by their links where it finds some.
func diskOf(storage bmov1alpha1.Storage) Disk {
	disk := Disk{
		Name: strings.TrimPrefix(storage.Name, "/dev/"), SizeBytes: int64(storage.SizeBytes), HCTL: storage.HCTL,
		Vendor: storage.Vendor, Model: storage.Model, Serial: storage.SerialNumber, WWN: cmp.Or(storage.WWNWithExtension, storage.WWN),
	}
	if storage.Rotational || storage.Type == bmov1alpha1.HDD {
		disk.Type = "HDD"
	}
	for _, name := range append([]string{storage.Name}, storage.AlternateNames...) {
		switch {
		case strings.HasPrefix(name, byPathLinks):
			disk.ByPath = name
		case path.Dir(name) == "/dev":
			disk.Name = path.Base(name)
		}
	}
	return disk
}
