// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"slices"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

const (
	// always is more often than anything happens in a run.
	always = 1 << 30

	wrongMAC            = "52:54:00:ff:00:0f"
	duplicateSerial     = "SN-DUPLICATE"
	provisioningMessage = "Image provisioning failed: virtual media could not be attached"
	registrationMessage = "Failed to get power state: the BMC does not answer"
	powerMessage        = "Host power change failed: the BMC refuses"
	inspectionMessage   = "Inspection failed: the ramdisk did not call back"
	installMessage      = "Failed to write image to disk: input/output error"
)

// reportedFaults need a person; the cluster has to say what for.
func reportedFaults() []Fault {
	return slices.Concat(identityFaults(), metal3Faults(), serviceFaults())
}

// identityFaults are of hosts whose Agents cannot be told.
func identityFaults() []Fault {
	return []Fault{
		{
			Name: "wrong-mac", Summary: "a host's agent reports another MAC address than its BareMetalHost has",
			Inject: injectWrongMAC, Report: aboutVictim("matches no BareMetalHost: if it is this host, correct spec.bootMACAddress"),
			Verify: verifyNobodyIsLetIn,
		},
		{
			Name:       "duplicate-identity",
			WholeWorld: true,
			Summary:    "two machines report the MAC address of one BareMetalHost, whose serial number is not known",
			Inspect: func(_ *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
				hardware.SystemVendor.SerialNumber = ""
			},
			Inject: injectDuplicateIdentity,
			Report: aboutVictim("all match BareMetalHost", "find the host that uses the identity of BareMetalHost"),
			Verify: verifyNobodyIsLetIn,
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
			Verify: verifyNobodyIsLetIn,
		},
		{
			Name: "control-plane-never-boots", Summary: "a control-plane host never registers",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Assisted.Faults().HostNeverBoots(host, true) })
			},
			Report: aboutVictim("was booted and its Agent has not registered"),
		},
	}
}

// metal3Faults are reported by baremetal-operator.
func metal3Faults() []Fault {
	return []Fault{
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
			Name: "bmc-unreachable", Rare: true, Summary: "a provisioned host's BMC stops answering",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Metal3.Faults().RegistrationError(host, registrationMessage) })
			},
			Report: aboutVictim("in state provisioned reports registration error: " + registrationMessage),
		},
		{
			Name: "power-failure", Rare: true, Summary: "a host cannot be powered on",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Metal3.Faults().PowerFailure(host, powerMessage) })
			},
			Report: aboutVictim("reports power management error: " + powerMessage),
		},
		{
			Name: "inspection-fails", Rare: true, Summary: "all hosts are registered anew, and their inspection fails",
			Prepare: failInspections, Inject: func(*FaultScene) {},
			Report: func(*FaultScene) []string { return []string{"no available host found"} },
		},
	}
}

// serviceFaults are reported by assisted-service.
func serviceFaults() []Fault {
	return []Fault{
		{
			Name: "wrong-boot-order", Rare: true, Summary: "an installed host boots the discovery image again",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Assisted.Faults().WrongBootOrder(host, true) })
			},
			Report: func(*FaultScene) []string { return []string{"please reboot and fix boot order to boot from disk"} },
		},
		{
			Name: "host-disconnects", Rare: true, Summary: "a recognised host falls silent before the installation",
			Inject: disconnect,
			Report: func(*FaultScene) []string { return []string{"assisted-service does not hear from the host"} },
		},
		{
			Name: "preparation-fails", Summary: "a host cannot be prepared for the installation",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Assisted.Faults().PreparationFails(host, always) })
			},
			Report: func(*FaultScene) []string {
				return []string{"The installation cannot be prepared: ", "assisted-service tries again until it can"}
			},
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

// verifyNobodyIsLetIn checks that none of the hosts that register is approved or bound. The report may come before the first of them.
func verifyNobodyIsLetIn(ctx context.Context, s *FaultScene) error {
	agents := &assisted.AgentList{}
	err := s.await(ctx, "a host to register", func(ctx context.Context) (string, error) {
		err := s.World.Client.List(ctx, agents, client.InNamespace(s.Cluster.Namespace))
		if err == nil && len(agents.Items) == 0 {
			return "there is no Agent", nil
		}
		return "", err
	})
	if err != nil {
		return err
	}
	for i := range agents.Items {
		if agent := &agents.Items[i]; letIn(agent) {
			return fmt.Errorf("nobody can tell whose Agent %s is, and it is approved (%t) or bound", agent.Name, agent.Spec.Approved)
		}
	}
	return nil
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

// failInspections registers every host anew, which fails at its inspection.
func failInspections(ctx context.Context, s *FaultScene) error {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := s.World.Client.List(ctx, hosts, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return fmt.Errorf("cannot list the BareMetalHosts: %w", err)
	}
	for i := range hosts.Items {
		host := &hosts.Items[i]
		s.World.Metal3.Faults().InspectionError(client.ObjectKeyFromObject(host), inspectionMessage)
		if err := s.World.Client.Delete(ctx, host); err != nil {
			return fmt.Errorf("cannot delete BareMetalHost %s: %w", host.Name, err)
		}
	}
	err := s.await(ctx, "the BareMetalHosts to be gone", s.World.HostsAvailable(s.Cluster.Namespace, 0))
	if err != nil {
		return err
	}
	for i := range hosts.Items {
		host := &bmov1alpha1.BareMetalHost{Spec: hosts.Items[i].Spec}
		host.Namespace, host.Name, host.Labels = s.Cluster.Namespace, hosts.Items[i].Name, hosts.Items[i].Labels
		if err := s.World.Client.Create(ctx, host); err != nil {
			return fmt.Errorf("cannot create BareMetalHost %s: %w", host.Name, err)
		}
	}
	return nil
}

// disconnect silences the agent of a host that was recognised. A check that fails keeps the installation from beginning meanwhile.
func disconnect(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		faults := s.World.Assisted.Faults()
		faults.HostValidationFails(host, "ntp-synced", "Host couldn't synchronize with any NTP server")
		s.Later(func(ctx context.Context) error {
			if err := s.awaitClaim(ctx, host); err != nil {
				return err
			}
			faults.Disconnect(host, true)
			return nil
		})
	})
}
