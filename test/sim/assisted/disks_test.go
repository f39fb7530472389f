// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestInstallationDisk follows a host's disk through its bind: the service fails on one while the bound host has not reported, takes it
// over afterwards, and refuses one that nothing may be installed on (ASSISTED 8.1).
func TestInstallationDisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Options{ShowEveryState: true})
	f.cluster("c1", 3, 0, true)
	f.infraEnv("late", "")
	hw := HostHardware{
		Hostname: "h0",
		Serial:   f.namespace + "h0",
		NICs:     []NIC{{Name: "eno1", MAC: "52:54:00:00:00:01", IPs: []string{"1.2.3.100/24"}}},
		Disks: []Disk{
			{Name: "sda", SizeBytes: 8 << 30, NotEligible: []string{"Disk is removable"}}, {Name: "sdb", SizeBytes: 480 << 30},
			{Name: "sdc", SizeBytes: 480 << 30},
		},
	}
	must(t, f.sim.BootHost(f.key("h0"), f.key("late"), hw))
	name, disks := hostID(hw), inventoryDisks(&hw)
	f.waitAgent(name, hostKnownUnbound)
	disk := func() string { return f.agent(name).Status.InstallationDiskID }
	f.eventually("the preferred disk", func() bool { return disk() == disks[1].ID })

	f.patchAgent(name, func(a *aiv1.Agent) {
		a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: "c1", Namespace: f.namespace}
		a.Spec.InstallationDiskID, a.Spec.Hostname, a.Spec.Approved = disks[2].ID, "named", true
	})
	synced := func(reason string) func() bool {
		return func() bool { return agentReason(f.agent(name), condSpecSynced) == reason }
	}
	f.eventually("the disk to be in the way", synced("BackendError"))
	f.eventually("the disk to be taken over", func() bool { return synced("SyncOK")() && disk() == disks[2].ID })

	f.patchAgent(name, func(a *aiv1.Agent) { a.Spec.InstallationDiskID = disks[0].ID })
	f.eventually("a disk to be refused", synced("InputError"))
	NewWithT(t).Expect(disk()).To(Equal(disks[2].ID))
	f.patchAgent(name, func(a *aiv1.Agent) { a.Spec.InstallationDiskID = "" })
	f.eventually("the refusal to end", synced("SyncOK"))
	NewWithT(t).Expect(disk()).To(Equal(disks[2].ID), "the service forgets no disk")
}

func TestDiskOf(t *testing.T) {
	g := NewWithT(t)
	g.Expect(diskOf(bmov1alpha1.Storage{
		Name: "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", AlternateNames: []string{"/dev/sda", "/dev/disk/by-id/wwn-0x1"},
		Type: bmov1alpha1.HDD, SizeBytes: 7, Vendor: "ATA", Model: "M", SerialNumber: "S",
		WWN: "0x1", WWNWithExtension: "0x12", HCTL: "0:0:0:0",
	})).To(Equal(Disk{Name: "sda", SizeBytes: 7, Type: "HDD", ByPath: "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", HCTL: "0:0:0:0",
		Vendor: "ATA", Model: "M", Serial: "S", WWN: "0x12"}))
	g.Expect(diskOf(bmov1alpha1.Storage{Name: "/dev/sdb", Type: bmov1alpha1.SSD, WWN: "0x1"})).To(Equal(Disk{Name: "sdb", WWN: "0x1"}))
}
