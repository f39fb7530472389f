// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

const (
	// outage is how long something is away, in simulated time: longer than a host's installation.
	outage = 8 * time.Second
	// restart is how long the service is away without hosts being given up. It gives up a host that it has not heard of for 5 s, some of which
	// are over when it goes, and when the host asks again.
	restart = 2 * time.Second

	// registrationSeconds is how long a host may take to register where one does not.
	registrationSeconds = 10

	validationID      = "dns-domain-defined"
	validationMessage = "The base domain is undefined and must be provided."

	strayMAC = "52:54:00:ff:00:01"
)

// recoveringFaults are overcome without help.
func recoveringFaults() []Fault {
	return []Fault{
		{Name: "iso-rotates", Summary: "the discovery image's URL changes before the hosts boot", Inject: rotateISO},
		{Name: "cluster-validation", Summary: "a check of the cluster fails, then clears", Inject: failClusterValidation},
		{Name: "kubeconfig-late", Summary: "the installer's kubeconfig comes late", Inject: func(s *FaultScene) {
			s.World.Assisted.Faults().KubeconfigLate(s.Install(), s.scaled(outage))
		}},
		{Name: "workload-api-down", Summary: "the installed cluster's API is down for a while", Inject: stopWorkloadAPI},
		{Name: "agent-disappears", NeedsPeers: true, Summary: "an Agent is deleted by somebody else before the installation", Inject: loseAgent},
		{
			Name: "worker-never-boots", Summary: "a worker boots only after the installation, and joins as day 2", NeedsWorker: true,
			Variables: map[string]string{"OPENSHIFT_WORKER_WAIT_TIMEOUT_SECONDS": "5"}, Inject: delayWorker, Verify: verifyLateWorker,
		},
		{
			Name: "boot-fails-once", Summary: "a host does not register until it is power-cycled",
			Inject: func(s *FaultScene) {
				s.OnFirstHost(true, func(host types.NamespacedName) {
					s.World.Assisted.Faults().BootsFail(host, 1)
					s.Later(s.giveHostsLessTime)
				})
			},
			Verify: verifyPowerCycled,
		},
		{
			Name: "stray-agent", Summary: "hosts that nobody asked for register before and during the installation",
			Inject: bootStrays, Verify: verifyStrays,
		},
		{Name: "provisioning-hangs", Summary: "a host stays in state provisioning for a while", Inject: hangProvisioning},
		{Name: "deprovisioning-hangs", Summary: "a host stays in state deprovisioning for a while", Inject: hangDeprovisioning},
		{Name: "stage-hangs", Summary: "a host stays in a stage of its installation for a while", Inject: hangStage},
		{
			Name: "assisted-restarts", WholeWorld: true, Summary: "assisted-service is away three times, once with its webhooks",
			Inject: restartService,
		},
	}
}

func rotateISO(s *FaultScene) {
	s.OnFirstHost(true, func(types.NamespacedName) {
		s.Later(func(ctx context.Context) error {
			infraEnv, err := s.infraEnv(ctx)
			if err != nil {
				return err
			}
			s.printf("fault: the image of InfraEnv %s has another URL", infraEnv.Name)
			s.World.Assisted.Faults().ISORotate(infraEnv)
			return nil
		})
	})
}

// failClusterValidation clears the check once the control plane has reported it.
func failClusterValidation(s *FaultScene) {
	s.World.Assisted.Faults().ClusterValidationFails(s.Install(), validationID, validationMessage)
	s.Later(func(ctx context.Context) error {
		err := s.await(ctx, "the failing check to be reported", func(ctx context.Context) (string, error) {
			controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
			if err := s.World.Watch.Get(ctx, s.Install(), controlPlane); err != nil {
				return "there is no control plane", client.IgnoreNotFound(err)
			}
			if conditions.GetReason(controlPlane, controlplanev1.InstalledCondition) == controlplanev1.ValidationsFailingReason {
				return "", nil
			}
			return conditionText(controlPlane, controlplanev1.InstalledCondition), nil
		})
		if err != nil {
			return err
		}
		s.printf("fault: the check is reported and clears now")
		s.World.Assisted.Faults().ClusterValidationFails(s.Install(), validationID, "")
		return nil
	})
}

func stopWorkloadAPI(s *FaultScene) {
	s.Later(func(ctx context.Context) error {
		if err := s.awaitPhase(ctx, controlplanev1.InstallPhaseFinalizing, controlplanev1.InstallPhaseCompleted); err != nil {
			return err
		}
		s.printf("fault: the installed cluster's API is down")
		if err := s.World.Workload.Down(s.Install(), 0); err != nil {
			return err
		}
		if err := s.awaitAPI(ctx, false); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the installed cluster's API stays down: %w", ctx.Err())
		case <-time.After(s.scaled(outage)):
		}
		if err := s.World.Workload.Up(s.Install()); err != nil {
			return err
		}
		return s.awaitAPI(ctx, true)
	})
}

// awaitAPI returns when the installed cluster's API answers, or does not any more.
func (s *FaultScene) awaitAPI(ctx context.Context, up bool) error {
	return pollUntil(ctx, settleTimeout, fmt.Sprintf("the installed cluster's API to answer: %t", up), func(context.Context) (string, error) {
		if s.World.Workload.Status(s.Install()).APIUp != up {
			return fmt.Sprintf("it answers: %t", !up), nil
		}
		return "", nil
	})
}

// giveHostsLessTime lets nobody wait half an hour for a host that does not register. The field is changeable at any time.
func (s *FaultScene) giveHostsLessTime(ctx context.Context) error {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	if err := s.World.Client.Get(ctx, s.Install(), controlPlane); err != nil {
		return fmt.Errorf("cannot read the control plane: %w", err)
	}
	changed := controlPlane.DeepCopy()
	changed.Spec.Install.HostRegistrationTimeoutSeconds = new(int32(registrationSeconds))
	if err := s.World.Client.Patch(ctx, changed, client.MergeFrom(controlPlane)); err != nil {
		return fmt.Errorf("cannot change spec.install.hostRegistrationTimeoutSeconds: %w", err)
	}
	return nil
}

// verifyPowerCycled checks that nothing of the power cycle is left on the host: without one it would not have registered.
func verifyPowerCycled(ctx context.Context, s *FaultScene) error {
	host := &bmov1alpha1.BareMetalHost{}
	if err := s.World.Client.Get(ctx, s.Victim(), host); err != nil {
		return fmt.Errorf("cannot read the host: %w", err)
	}
	if record, ok := host.Annotations[bootstrapv1.PowerCycleAnnotation]; ok {
		return fmt.Errorf("BareMetalHost %s has registered, and still the record of its power cycle: %s", host.Name, record)
	}
	return nil
}

// loseAgent deletes the Agent of a control-plane host when it was recognised, and does not reboot the host.
func loseAgent(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		faults := s.World.Assisted.Faults()
		// The installation must not begin before: it would go on with a member too few, for ever.
		faults.HostValidationFails(host, "ntp-synced", "Host couldn't synchronize with any NTP server")
		s.Later(func(ctx context.Context) error {
			if err := s.awaitClaim(ctx, host); err != nil {
				return err
			}
			s.printf("fault: the Agent of BareMetalHost %s vanishes", host.Name)
			err := faults.AgentVanishes(ctx, host, 0)
			faults.HostValidationFails(host, "ntp-synced", "")
			return err
		})
	})
}

// awaitClaim returns when the host's Agent was recognised.
func (s *FaultScene) awaitClaim(ctx context.Context, host types.NamespacedName) error {
	return s.await(ctx, "the Agent of BareMetalHost "+host.Name+" to be recognised", func(ctx context.Context) (string, error) {
		key, ok := s.World.Assisted.AgentOf(host)
		if !ok {
			return "the host has not booted", nil
		}
		agent := &assisted.Agent{}
		if err := s.World.Watch.Get(ctx, key, agent); err != nil {
			return "the host has not registered", client.IgnoreNotFound(err)
		}
		if agent.Annotations[bootstrapv1.ClaimAnnotation] == "" {
			return "the host was not recognised", nil
		}
		return "", nil
	})
}

func delayWorker(s *FaultScene) {
	s.OnFirstHost(false, func(host types.NamespacedName) {
		s.World.Assisted.Faults().HostNeverBoots(host, true)
		s.Later(func(ctx context.Context) error {
			if err := s.awaitPhase(ctx, controlplanev1.InstallPhaseCompleted); err != nil {
				return err
			}
			s.printf("fault: BareMetalHost %s boots at last", host.Name)
			s.World.Assisted.Faults().HostNeverBoots(host, false)
			return nil
		})
	})
}

func verifyLateWorker(ctx context.Context, s *FaultScene) error {
	agent, ok := s.World.Assisted.AgentOf(s.Victim())
	if !ok {
		return fmt.Errorf("BareMetalHost %s has no Agent", s.Victim())
	}
	return s.World.VerifyDayTwo(ctx, s.Cluster, agent.Name)
}

// begun are the phases of an installation from when its hosts are installed. On a busy machine the first of them may be over when the
// control plane has its next pass.
var begun = []string{controlplanev1.InstallPhaseInstalling, controlplanev1.InstallPhaseFinalizing, controlplanev1.InstallPhaseCompleted}

// bootStrays boots one host as soon as there is an image, and another while the cluster is installed.
func bootStrays(s *FaultScene) {
	boot := func(ctx context.Context, mac string) error {
		infraEnv, err := s.infraEnv(ctx)
		if err != nil {
			return err
		}
		s.printf("fault: a stray host boots from InfraEnv %s", infraEnv.Name)
		_, err = s.World.Assisted.BootStray(infraEnv, simassisted.HostHardware{
			Hostname: "stray", Serial: "SN-" + mac, NICs: []simassisted.NIC{{Name: "eno1", MAC: mac}},
			Disks: []simassisted.Disk{{Name: "sda", SizeBytes: 1 << 38}},
		})
		return err
	}
	s.OnFirstHost(true, func(types.NamespacedName) {
		s.Later(func(ctx context.Context) error { return boot(ctx, strayMAC) })
	})
	s.Later(func(ctx context.Context) error {
		if err := s.awaitPhase(ctx, begun...); err != nil {
			return err
		}
		return boot(ctx, strayMAC[:len(strayMAC)-1]+"2")
	})
}

func verifyStrays(ctx context.Context, s *FaultScene) error {
	const want = 2
	return s.await(ctx, "both strays to register", func(ctx context.Context) (string, error) {
		agents := &assisted.AgentList{}
		if err := s.World.Client.List(ctx, agents, client.InNamespace(s.Cluster.Namespace)); err != nil {
			return "", fmt.Errorf("cannot list the Agents: %w", err)
		}
		strays := 0
		for i := range agents.Items {
			agent := &agents.Items[i]
			if agent.Annotations[bootstrapv1.ClaimAnnotation] != "" {
				continue
			}
			strays++
			if letIn(agent) {
				return "", fmt.Errorf("stray Agent %s is approved (%t) or bound", agent.Name, agent.Spec.Approved)
			}
		}
		switch {
		case strays > want:
			return "", fmt.Errorf("there are %d stray Agents, want %d", strays, want)
		case strays < want:
			return fmt.Sprintf("there are %d stray Agents", strays), nil
		}
		return "", nil
	})
}

// letIn reports whether an Agent is approved or bound.
func letIn(agent *assisted.Agent) bool {
	return agent.Spec.Approved || agent.Spec.ClusterDeploymentName != nil
}

// restartService takes the service away three times: with its webhooks until users are told, while hosts boot, and while they install.
func restartService(s *FaultScene) {
	service := s.World.Assisted.Faults()
	away := func() {
		s.printf("fault: assisted-service is away")
		service.ServiceDown(s.scaled(restart))
	}
	s.printf("fault: assisted-service is away, and its webhooks with it")
	service.Away(true)
	s.OnFirstHost(true, func(types.NamespacedName) { away() })
	s.Later(func(ctx context.Context) error {
		if err := s.await(ctx, "the control plane and its configs to say that webhooks do not answer", s.silenceIsTold); err != nil {
			return err
		}
		s.printf("fault: the control plane and its configs say so, and assisted-service comes back")
		service.Away(false)
		if err := s.awaitPhase(ctx, begun...); err != nil {
			return err
		}
		away()
		return nil
	})
}

// silenceIsTold checks that the control plane and its configs say why their objects cannot be written.
func (s *FaultScene) silenceIsTold(ctx context.Context) (string, error) {
	const silent = "does not answer"
	controlPlane, configs := &controlplanev1.OpenshiftAssistedControlPlane{}, &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := s.World.Watch.Get(ctx, s.Install(), controlPlane); err != nil {
		return "there is no control plane", client.IgnoreNotFound(err)
	}
	if !strings.Contains(conditions.GetMessage(controlPlane, controlplanev1.InstalledCondition), silent) {
		return conditionText(controlPlane, controlplanev1.InstalledCondition), nil
	}
	if err := s.World.Watch.List(ctx, configs, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return "", err
	}
	for i := range configs.Items {
		if !strings.Contains(conditions.GetMessage(&configs.Items[i], bootstrapv1.DiscoveryImageReadyCondition), silent) {
			return conditionText(&configs.Items[i], bootstrapv1.DiscoveryImageReadyCondition), nil
		}
	}
	return missingConfigs(len(configs.Items)), nil
}

func missingConfigs(there int) string {
	if there == 0 {
		return "there is no config"
	}
	return ""
}
