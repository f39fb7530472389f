// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

const (
	// always is more often than anything happens in a run.
	always = 1 << 30
	// attempts is how many attempts to prepare the installation are followed: a phase takes a moment here, and a manager may miss some.
	attempts = 5

	wrongMAC            = "52:54:00:ff:00:0f"
	duplicateSerial     = "SN-DUPLICATE"
	bothHaveSerial      = `both have serial number "` + duplicateSerial + `"`
	provisioningMessage = "Image provisioning failed: virtual media could not be attached"
	registrationMessage = "Failed to get power state: the BMC does not answer"
	powerMessage        = "Host power change failed: the BMC refuses"
	inspectionMessage   = "Inspection failed: the ramdisk did not call back"
	installMessage      = "Failed to write image to disk: input/output error"
	// manifestsMessage is what assisted-service repeats of a failed openshift-install, line breaks and all.
	manifestsMessage = "error running openshift-install manifests,  level=error msg=failed to fetch Master Machines: failed to load asset " +
		"\"Install Config\": failed to create install config: invalid \"install-config.yaml\" file: " + manifestsReason + "\n: exit status 3"
	manifestsReason = `publish: Invalid value: "Internal": Internal publish strategy is not supported on "none" platform`
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
			Inject: injectWrongMAC, Report: aboutVictim("matches no BareMetalHost: if it is this host, replace the BareMetalHost by one with"),
			Verify: verifyVictimIsOut,
		},
		{
			Name:    "duplicate-identity",
			Summary: "two machines report the MAC address of one BareMetalHost, whose serial number is not known",
			Inspect: func(_ *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
				hardware.SystemVendor.SerialNumber = ""
			},
			Inject: injectDuplicateIdentity,
			Report: aboutVictim("all match BareMetalHost", "find the host that uses the identity of BareMetalHost"),
			Verify: verifyVictimIsOut,
		},
		{
			Name: "duplicate-serial", NeedsPeers: true, Summary: "two hosts have one serial number, and register as one Agent",
			Inspect: func(_ *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails) {
				hardware.SystemVendor.SerialNumber = duplicateSerial
			},
			Prepare: func(ctx context.Context, s *FaultScene) error { return s.bootHosts(ctx, false) },
			Inject:  func(s *FaultScene) { s.Later(s.bootTogether) },
			Report: func(*FaultScene) []string {
				return []string{bothHaveSerial, "correct the serial number in the firmware"}
			},
			Verify: verifyNobodyIsLetIn,
		},
		{
			Name: "control-plane-never-boots", Summary: "a control-plane host never registers",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) {
					s.World.Assisted.Faults().HostNeverBoots(host, true)
					s.Later(s.giveHostsLessTime)
				})
			},
			Report: aboutVictim("(attempt 2 of 2): look at the host's console, its boot medium and its network"),
			Verify: verifyVictimIsOut,
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
			// The cause itself shows on and off, while baremetal-operator tries again.
			Report: aboutVictim("in state available reports provisioning error: provisioning failed 5 times, retry limit (5) reached"),
			Verify: verifyVictimIsOut,
		},
		{
			Name: "bmc-unreachable", Summary: "a provisioned host's BMC stops answering",
			Inject: loseBMC,
			Report: aboutVictim("in state provisioned reports registration error: " + registrationMessage),
			Verify: verifyMachinesAreIn,
		},
		{
			Name: "power-failure", Summary: "a host cannot be powered on",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Metal3.Faults().PowerFailure(host, powerMessage) })
			},
			Report: aboutVictim("reports power management error: " + powerMessage),
			Verify: verifyVictimIsOut,
		},
		{
			Name: "inspection-fails", Summary: "all hosts are registered anew, and their inspection fails",
			Prepare: failInspections, Inject: func(*FaultScene) {},
			Report: func(*FaultScene) []string { return []string{"no available host found"} },
			Verify: verifyNobodyRegisters,
		},
	}
}

// serviceFaults are reported by assisted-service.
func serviceFaults() []Fault {
	return []Fault{
		{
			Name: "wrong-boot-order", Summary: "an installed host boots the discovery image again",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Assisted.Faults().WrongBootOrder(host, true) })
			},
			Report: func(*FaultScene) []string { return []string{"please reboot and fix boot order to boot from disk"} },
			Verify: verifyMachinesAreIn,
		},
		{
			Name: "host-disconnects", Summary: "a recognised host falls silent before the installation",
			Inject: disconnect,
			Report: func(*FaultScene) []string { return []string{"assisted-service does not hear from the host"} },
			Verify: verifyMachinesAreIn,
		},
		{
			Name: "preparation-fails", Summary: "a host cannot be prepared for the installation",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) { s.World.Assisted.Faults().PreparationFails(host, always) })
			},
			Report: func(*FaultScene) []string {
				return []string{"The installation cannot be prepared: the host of Machine", "assisted-service tries again until it can"}
			},
			Verify: verifyNextAttempts,
		},
		{
			Name: "manifests-fail", Summary: "the manifests of the installation cannot be made",
			Inject: func(s *FaultScene) { s.World.Assisted.Faults().ManifestsFail(s.Install(), manifestsMessage) },
			Report: func(*FaultScene) []string {
				return []string{
					"The installation cannot be prepared: failed generating install config for cluster", manifestsReason,
					"assisted-service tries again until it can",
				}
			},
			Verify: verifyNextAttempts,
		},
		{
			Name: "install-fails", Summary: "a control-plane host's installation fails; -retry asks for another attempt",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) {
					s.World.Assisted.Faults().InstallFails(host, simassisted.StageWritingImage, installMessage)
				})
			},
			Report: func(*FaultScene) []string { return []string{installMessage, "retry-installation"} },
			Verify: verifyMachinesAreIn,
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

// verifyNextAttempts follows some more attempts to prepare the installation. The control plane says all the time that it fails, so that
// spec.install may be changed, and nothing is installed.
func verifyNextAttempts(ctx context.Context, s *FaultScene) error {
	// The first one gives the watch time to catch up with what clusterctl has shown.
	if err := s.followAttempts(ctx, 1); err != nil {
		return err
	}
	var other atomic.Pointer[string]
	s.World.Watch.OnChange(func(object client.Object) {
		controlPlane, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane)
		if !ok || client.ObjectKeyFromObject(controlPlane) != s.Install() {
			return
		}
		reason, phase := conditions.GetReason(controlPlane, controlplanev1.InstalledCondition), controlPlane.Status.Install.Phase
		if reason != controlplanev1.PreparationFailedReason || phase != controlplanev1.InstallPhaseWaitingForHosts {
			other.Store(ptr.To(fmt.Sprintf("while the installation cannot be prepared, its phase is %s and its reason %s", phase, reason)))
		}
	})
	if err := s.followAttempts(ctx, attempts); err != nil {
		return err
	}
	if said := other.Load(); said != nil {
		return errors.New(*said)
	}
	return nil
}

// followAttempts returns when assisted-service has begun and given up so many more attempts to prepare the installation.
func (s *FaultScene) followAttempts(ctx context.Context, count int) error {
	for _, phase := range slices.Repeat([]assisted.Phase{assisted.PhasePreparing, assisted.PhaseWaiting}, count) {
		if err := s.awaitInstall(ctx, phase); err != nil {
			return err
		}
	}
	return nil
}

// awaitInstall returns when assisted-service is in a phase of the installation.
func (s *FaultScene) awaitInstall(ctx context.Context, phase assisted.Phase) error {
	return s.await(ctx, "the AgentClusterInstall to be in phase "+string(phase), func(ctx context.Context) (string, error) {
		install := &hiveext.AgentClusterInstall{}
		if err := s.World.Watch.Get(ctx, s.Install(), install); err != nil {
			return "", fmt.Errorf("cannot read the AgentClusterInstall: %w", err)
		}
		if now := assisted.PhaseOf(install); now != phase {
			return fmt.Sprintf("it is in phase %s", now), nil
		}
		return "", nil
	})
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

// loseBMC lets the BMC of a host fall silent once it has switched the host on.
func loseBMC(s *FaultScene) {
	s.OnFirstHost(true, func(key types.NamespacedName) {
		s.Later(func(ctx context.Context) error {
			err := s.await(ctx, "BareMetalHost "+key.Name+" to have power", func(ctx context.Context) (string, error) {
				host := &bmov1alpha1.BareMetalHost{}
				if err := s.World.Watch.Get(ctx, key, host); err != nil {
					return "", fmt.Errorf("cannot read BareMetalHost %s: %w", key, err)
				}
				if !host.Status.PoweredOn {
					return "it has none", nil
				}
				return "", nil
			})
			if err == nil {
				s.World.Metal3.Faults().RegistrationError(key, registrationMessage)
			}
			return err
		})
	})
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
