// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

const (
	wrongMAC            = "52:54:00:ff:00:0f"
	duplicateSerial     = "SN-DUPLICATE"
	provisioningMessage = "Image provisioning failed: virtual media could not be attached"
	installMessage      = "Failed to write image to disk: input/output error"
)

// reportedFaults need a person; the cluster has to say what for.
func reportedFaults() []Fault {
	return []Fault{
		{
			Name: "wrong-mac", Summary: "a host's agent reports another MAC address than its BareMetalHost has",
			Inject: injectWrongMAC, Report: aboutVictim("matches no BareMetalHost: if it is this host, correct spec.bootMACAddress"),
		},
		{
			Name: "duplicate-identity", WholeWorld: true, Summary: "two machines report the MAC address of one BareMetalHost, whose serial number is not known",
			Inspect: func(_ *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
				hardware.SystemVendor.SerialNumber = ""
			},
			Inject: injectDuplicateIdentity, Report: aboutVictim("all match BareMetalHost", "find the host that uses the identity of BareMetalHost"),
		},
		{
			Name: "duplicate-serial", NeedsPeers: true, WholeWorld: true, Summary: "two hosts have one serial number, and register as one Agent",
			Inspect: func(_ *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
				hardware.SystemVendor.SerialNumber = duplicateSerial
			},
			Inject: func(*FaultScene) {},
			Report: func(*FaultScene) []string {
				return []string{fmt.Sprintf("both have serial number %q", duplicateSerial), "correct the serial number in the firmware"}
			},
		},
		{
			Name: "control-plane-never-boots", Summary: "a control-plane host never registers",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Assisted.Faults().HostNeverBoots(host, true) })
			},
			Report: aboutVictim("was booted and its Agent has not registered"),
		},
		{
			Name: "host-provisioning-fails", Summary: "a BareMetalHost cannot be provisioned",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) {
					s.World.Metal3.Faults().ProvisioningError(host, provisioningMessage, 0)
				})
			},
			Report: aboutVictim(provisioningMessage),
		},
		{
			Name: "install-fails", Summary: "a control-plane host's installation fails; -retry asks for another attempt",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) {
					s.World.Assisted.Faults().InstallFails(host, simassisted.StageWritingImage, installMessage)
				})
			},
			Report: func(*FaultScene) []string { return []string{installMessage, "retry-installation"} },
		},
	}
}

// aboutVictim are the texts of a report that names the BareMetalHost. Before there is a victim nothing can be reported.
func aboutVictim(texts ...string) func(*FaultScene) []string {
	return func(s *FaultScene) []string {
		name := s.Victim().Name
		if name == "" {
			name = "the BareMetalHost that the fault hits"
		}
		return append([]string{name}, texts...)
	}
}

// injectWrongMAC changes what the first control-plane host that boots reports.
func injectWrongMAC(s *FaultScene) {
	s.World.simulators.changeHardware(func(host *bmov1alpha1.BareMetalHost, hardware simassisted.HostHardware) simassisted.HostHardware {
		if !s.isOf(host, true) {
			return hardware
		}
		if victim, _ := s.hit(host); victim {
			for i := range hardware.NICs {
				hardware.NICs[i].MAC = wrongMAC
			}
		}
		return hardware
	})
}

// injectDuplicateIdentity boots a second machine with the MAC address of a control-plane host. No serial number tells the two apart.
func injectDuplicateIdentity(s *FaultScene) {
	s.OnFirstHost(true, func(key types.NamespacedName) {
		s.Later(func(ctx context.Context) error {
			host := &bmov1alpha1.BareMetalHost{}
			if err := s.World.Client.Get(ctx, key, host); err != nil {
				return fmt.Errorf("cannot read BareMetalHost %s: %w", key, err)
			}
			infraEnv, err := s.infraEnv(ctx)
			if err != nil {
				return err
			}
			hardware := simassisted.HardwareOf(host)
			hardware.Serial, hardware.SystemUUID = "", "5aa2d2b6-0000-4000-8000-000000000001"
			_, err = s.World.Assisted.BootStray(infraEnv, hardware)
			return err
		})
	})
}
