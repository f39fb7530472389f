// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

var (
	born  = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	later = metav1.NewTime(born.Add(time.Minute))
)

// discovered is a scope with a claimed Agent that may be bound, and a cluster whose day 1 is open.
func discovered() *scope {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns", UID: "machine-uid", CreationTimestamp: born,
		Annotations: map[string]string{bootstrapv1.AgentDeletionHook: "x"}, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: metal3.MachineKind, Name: "m-0",
	}
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns",
		Annotations: map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x", bootstrapv1.AgentAnnotation: "a-0"}}}
	m3m := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": metal3.InfrastructureGroup + "/v1beta2", "kind": metal3.MachineKind},
	}
	m3m.SetName("m-0")
	m3m.SetNamespace("ns")
	m3m.SetAnnotations(map[string]string{metal3.HostAnnotation: "ns/host-0"})
	host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "host-0", Namespace: "ns", UID: "host-uid"}}
	host.Spec.BootMACAddress = "aa:00"
	host.Status.Provisioning.State = bmov1alpha1.StateProvisioned
	agent := assisted.Agent{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a-0", Namespace: "ns", CreationTimestamp: later,
			Labels:      map[string]string{assisted.InfraEnvLabel: "demo-x"},
			Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "m-0/machine-uid"},
		},
	}
	agent.Status.Inventory.Interfaces = []assisted.Interface{{MACAddress: "aa:00"}}
	agent.Status.DebugInfo.State = assisted.AgentStateKnownUnbound
	install := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Name: "cp", Namespace: "ns", UID: "install-uid"}}
	install.Spec.ClusterDeploymentRef.Name = "cp"
	install.Status.DebugInfo.State = assisted.ClusterStateInsufficient
	install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInstallationNotStartedReason},
	}
	s := &scope{
		config: config, machine: machine, infraMachine: m3m, hosts: []bmov1alpha1.BareMetalHost{host},
		agents: []assisted.Agent{agent}, install: install, now: later.Add(time.Hour),
		save: func(context.Context) kube.Outcome { return kube.OutcomeOf(nil) },
	}
	s.host = &s.hosts[0]
	return s
}

func bound(a *assisted.Agent, state string, conditions ...assisted.Condition) {
	a.Spec.ClusterDeploymentName = &assisted.ClusterReference{Name: "cp", Namespace: "ns"}
	a.Spec.Approved = true
	a.Status.DebugInfo.State = state
	a.Status.Conditions = conditions
}

func completed(s *scope) {
	s.install.Status.DebugInfo.State = assisted.ClusterStateAddingHosts
	s.install.Status.Conditions[0].Status = corev1.ConditionTrue
}

func worker(s *scope) { s.machine.Labels = nil }

func TestDecide(t *testing.T) {
	tests := []struct {
		name       string
		change     func(*scope)
		recognized string
		installed  string
		check      func(*WithT, decision)
	}{
		{name: "day 1 is open: bound with everything in one patch", change: func(*scope) {},
			recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.bind).NotTo(BeNil())
				g.Expect(d.bind.role).To(Equal(assisted.RoleMaster))
				g.Expect(d.bind.hostname).To(Equal("m-0"))
				g.Expect(d.bind.labels).To(HaveKeyWithValue(metal3.NodeUIDLabel, "host-uid"))
				g.Expect(d.bind.cluster).To(Equal(assisted.ClusterReference{Namespace: "ns", Name: "cp"}))
			}},
		{name: "named after the host", change: func(s *scope) { s.config.Spec.NodeRegistration.Name = bootstrapv1.NodeNameBareMetalHost },
			recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind.hostname).To(Equal("host-0")) }},
		{name: "named after a host whose name is no hostname", change: func(s *scope) {
			s.config.Spec.NodeRegistration.Name, s.host.Name = bootstrapv1.NodeNameBareMetalHost, "localhost.localdomain"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.HostnameInvalidReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind).To(BeNil()) }},
		{name: "of another architecture", change: func(s *scope) {
			s.config.Spec.CPUArchitecture, s.agents[0].Status.Inventory.CPU.Architecture = "aarch64", "x86_64"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.ArchitectureMismatchReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.bind).To(BeNil())
				g.Expect(d.installed.Message).To(ContainSubstring("Agent a-0 reports architecture x86_64, and spec.cpuArchitecture is aarch64"))
			}},
		{name: "of another architecture than the one that is assumed, while the cluster takes no hosts", change: func(s *scope) {
			s.agents[0].Status.Inventory.CPU.Architecture, s.install = "s390x", nil
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.ArchitectureMismatchReason},
		{name: "of the architecture that was asked for", change: func(s *scope) {
			s.config.Spec.CPUArchitecture, s.agents[0].Status.Inventory.CPU.Architecture = "aarch64", "aarch64"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind).NotTo(BeNil()) }},
		{name: "of the architecture that is assumed, by its other name", change: func(s *scope) {
			s.agents[0].Status.Inventory.CPU.Architecture = "amd64"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind).NotTo(BeNil()) }},
		{
			name: "no worker while none is required", change: worker, recognized: bootstrapv1.HostRecognizedReason,
			installed: bootstrapv1.WaitingForClusterReason, check: func(g *WithT, d decision) { g.Expect(d.bind).To(BeNil()) },
		},
		{name: "day 1 is closed", change: func(s *scope) { s.install.Annotations = map[string]string{assisted.DayOneAgentsAnnotation: "a-9"} },
			recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.WaitingForClusterReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind).To(BeNil()) }},
		{name: "installing", change: func(s *scope) {
			s.install.Status.DebugInfo.State = assisted.ClusterStateInstalling
			s.install.Status.Conditions[0].Reason = hiveext.ClusterInstallationInProgressReason
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.WaitingForClusterReason},
		{
			name: "day 2", change: func(s *scope) { worker(s); completed(s) }, recognized: bootstrapv1.HostRecognizedReason,
			installed: bootstrapv1.AgentBindingReason,
			check:     func(g *WithT, d decision) { g.Expect(d.bind.role).To(Equal(assisted.RoleWorker)) },
		},
		{name: "a custom MachineConfigPool on day 2", change: func(s *scope) {
			worker(s)
			completed(s)
			s.config.Spec.NodeRegistration.MachineConfigPool = "infra"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind.pool).To(Equal("infra")) }},
		{name: "a custom MachineConfigPool on day 1", change: func(s *scope) {
			worker(s)
			s.install.Spec.ProvisionRequirements.WorkerAgents = 1
			s.config.Spec.NodeRegistration.MachineConfigPool = "infra"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.WaitingForClusterReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind).To(BeNil()) }},
		{name: "control-plane hosts have no custom MachineConfigPool", change: func(s *scope) {
			s.config.Spec.NodeRegistration.MachineConfigPool = "infra"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind.pool).To(BeEmpty()) }},
		{
			name: "no AgentClusterInstall", change: func(s *scope) { s.install = nil }, recognized: bootstrapv1.HostRecognizedReason,
			installed: bootstrapv1.WaitingForClusterReason,
		},
		{name: "not known yet", change: func(s *scope) { s.agents[0].Status.DebugInfo.State = "discovering-unbound" },
			recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentDiscoveringReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind).To(BeNil()) }},
		{name: "a refused bind is nudged when the cluster takes hosts", change: func(s *scope) {
			completed(s)
			bound(
				&s.agents[0], assisted.AgentStateKnownUnbound,
				assisted.Condition{Type: assisted.ConditionSpecSynced, Status: corev1.ConditionFalse, Reason: assisted.ReasonInputError},
			)
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.nudgeValue).To(Equal("install-uid/Completed")) }},
		{name: "a nudge is given once", change: func(s *scope) {
			completed(s)
			bound(
				&s.agents[0], assisted.AgentStateKnownUnbound,
				assisted.Condition{Type: assisted.ConditionSpecSynced, Status: corev1.ConditionFalse, Reason: assisted.ReasonInputError},
			)
			s.agents[0].Annotations[bootstrapv1.BindNudgeAnnotation] = "install-uid/Completed"
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentNeedsAttentionReason,
			check: func(g *WithT, d decision) { g.Expect(d.nudge).To(BeNil()) }},
		{name: "bound to another cluster by somebody", change: func(s *scope) {
			s.agents[0].Spec.ClusterDeploymentName = &assisted.ClusterReference{Name: "other", Namespace: "ns"}
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.WaitingForClusterReason},
		{name: "installed", change: func(s *scope) {
			bound(&s.agents[0], "installed", assisted.Condition{Type: assisted.ConditionInstalled, Status: corev1.ConditionTrue})
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentInstalledReason},
		{name: "failed", change: func(s *scope) {
			bound(
				&s.agents[0], "error",
				assisted.Condition{Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationFailed},
			)
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentInstallationFailedReason},
		{name: "needs attention", change: func(s *scope) { bound(&s.agents[0], assisted.AgentStatePendingUserAction) },
			recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentPendingUserActionReason},
		{name: "disconnected", change: func(s *scope) {
			bound(&s.agents[0], "disconnected", assisted.Condition{Type: assisted.ConditionConnected, Status: corev1.ConditionFalse})
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentDisconnectedReason},
		{name: "unclaimed: recorded, so that its host is rebooted whoever deletes it from now on, claimed and bound", change: func(s *scope) {
			s.agents[0].Annotations = nil
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.record).To(Equal("a-0"))
				g.Expect(d.claim).To(BeNil(), "one patch does both")
				g.Expect(d.bind.claim).To(Equal("m-0/machine-uid"))
			}},
		{name: "recorded, while the cluster takes no hosts: claimed", change: func(s *scope) { s.agents[0].Annotations, s.install = nil, nil },
			recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.WaitingForClusterReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.claim).NotTo(BeNil())
				g.Expect(d.bind).To(BeNil())
			}},
		{name: "unclaimed, and bound by somebody: claimed", change: func(s *scope) {
			s.agents[0].Annotations = nil
			s.agents[0].Spec.ClusterDeploymentName = &assisted.ClusterReference{Name: "other", Namespace: "ns"}
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) { g.Expect(d.claim).NotTo(BeNil()) }},
		{name: "recorded and gone before it was claimed: its host waits for a reboot", change: func(s *scope) { s.agents = nil },
			recognized: bootstrapv1.AgentLostReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) { g.Expect(d.reboot).To(BeTrue()) }},
		{name: "no claim before the hook", change: func(s *scope) {
			s.agents[0].Annotations, s.machine.Annotations = nil, nil
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
		}, recognized: bootstrapv1.ClaimingAgentReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.hook).To(BeTrue())
				g.Expect(d.claim).To(BeNil())
			}},
		{name: "an Agent older than the Machine is recorded, so that its host is rebooted when it is gone", change: func(s *scope) {
			s.agents[0].Annotations = nil
			s.agents[0].CreationTimestamp, s.machine.CreationTimestamp = born, later
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
		}, recognized: bootstrapv1.WaitingForAgentReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.record).To(Equal("a-0"))
				g.Expect(d.leftover).NotTo(BeNil())
			}},
		{name: "an Agent older than the Machine is of an earlier life", change: func(s *scope) {
			s.agents[0].Annotations = nil
			s.agents[0].CreationTimestamp, s.machine.CreationTimestamp = born, later
		}, recognized: bootstrapv1.WaitingForAgentReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) { g.Expect(d.leftover).NotTo(BeNil()) }},
		{
			name: "lost before it was installed", change: func(s *scope) { s.agents = nil }, recognized: bootstrapv1.AgentLostReason,
			installed: bootstrapv1.WaitingForRecognitionReason, check: func(g *WithT, d decision) { g.Expect(d.reboot).To(BeTrue()) },
		},
		{name: "lost when it was installed, and its Machine has no Node yet", change: func(s *scope) { lostInstalled(s) },
			recognized: bootstrapv1.AgentLostReason, installed: bootstrapv1.AgentInstalledReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.reboot || d.rebooted || d.wait.cycle).To(BeFalse())
				g.Expect(d.recognized.Message).
					To(And(ContainSubstring("a-0"), ContainSubstring("not rebooted"), ContainSubstring("delete Machine m-0")))
			}},
		{name: "lost when its Node runs", change: func(s *scope) { s.agents, s.machine.Status.NodeRef.Name = nil, "m-0" },
			recognized: bootstrapv1.NodeJoinedReason, installed: bootstrapv1.NodeJoinedReason,
			check: func(g *WithT, d decision) { g.Expect(d.reboot).To(BeFalse()) }},
		{
			name:       "lost by a move, which leaves Agents and status behind",
			change:     func(s *scope) { s.agents, s.machine.Spec.ProviderID = nil, "metal3://ns/host-0/m-0" },
			recognized: bootstrapv1.NodeJoinedReason,
			installed:  bootstrapv1.NodeJoinedReason,
			check:      func(g *WithT, d decision) { g.Expect(d.reboot).To(BeFalse()) },
		},
		{name: "an Agent that its running host registers anew is not claimed", change: func(s *scope) {
			s.agents[0].Annotations, s.machine.Spec.ProviderID = nil, "metal3://ns/host-0/m-0"
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
		}, recognized: bootstrapv1.NodeJoinedReason, installed: bootstrapv1.NodeJoinedReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.claim == nil && d.leftover == nil && d.bind == nil).To(BeTrue())
			}},
		{name: "a Node of a management cluster without assisted-service", change: func(s *scope) {
			s.agents, s.missingCRDs, s.machine.Spec.ProviderID = nil, []string{assisted.CRDAgents}, "metal3://ns/host-0/m-0"
		}, recognized: bootstrapv1.NodeJoinedReason, installed: bootstrapv1.NodeJoinedReason},
		{name: "an Agent of a vanished Machine is not reused", change: func(s *scope) {
			s.agents[0].Annotations[bootstrapv1.ClaimAnnotation] = "gone/uid"
		}, recognized: bootstrapv1.WaitingForAgentReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.leftover).NotTo(BeNil())
				g.Expect(d.claim).To(BeNil())
			}},
		{name: "an InfraEnv of its own, booted by another Machine's host", change: func(s *scope) {
			s.config.Spec.HostIdentity, s.host, s.hosts = bootstrapv1.HostIdentityInfraEnv, nil, nil
			s.agents[0].Annotations[bootstrapv1.ClaimAnnotation] = "m-1/other-uid"
			s.livingClaims = []string{"m-1/other-uid"}
		}, recognized: bootstrapv1.AgentClaimedByOtherReason, installed: bootstrapv1.WaitingForRecognitionReason,
			check: func(g *WithT, d decision) { g.Expect(d.leftover).To(BeNil()) }},
		{
			name: "no host", change: func(s *scope) { s.host = nil }, recognized: bootstrapv1.WaitingForHostReason,
			installed: bootstrapv1.WaitingForRecognitionReason,
		},
		{
			name:       "an InfraEnv of its own is identity enough",
			change:     ofOtherInfrastructure,
			recognized: bootstrapv1.HostRecognizedReason,
			installed:  bootstrapv1.AgentBindingReason,
			check:      func(g *WithT, d decision) { g.Expect(d.bind.labels).To(BeEmpty()) },
		},
		{name: "infrastructure of others gives the provider ID before the host registers", change: func(s *scope) {
			ofOtherInfrastructure(s)
			s.machine.Spec.ProviderID = "dev:///m-0"
			s.agents[0].Annotations, s.config.Annotations = nil, map[string]string{
				bootstrapv1.InfraEnvAnnotation: "demo-x", bootstrapv1.AgentAnnotation: "a-0"}
		}, recognized: bootstrapv1.HostRecognizedReason, installed: bootstrapv1.AgentBindingReason,
			check: func(g *WithT, d decision) { g.Expect(d.bind.claim).NotTo(BeEmpty()) }},
		{
			name: "no CRDs", change: func(s *scope) { s.missingCRDs = []string{assisted.CRDAgents} },
			recognized: bootstrapv1.WaitingForCRDsReason, installed: bootstrapv1.WaitingForRecognitionReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			tt.change(s)
			s.allAgents = s.agents
			d := decide(s)
			g.Expect(d.recognized.Reason).To(Equal(tt.recognized), d.recognized.Message)
			g.Expect(d.installed.Reason).To(Equal(tt.installed), d.installed.Message)
			if tt.check != nil {
				tt.check(g, d)
			}
		})
	}
}

func TestHostFact(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	g.Expect(hostFact(s).Reason).To(Equal(bootstrapv1.HostHealthyReason))
	s.host.Status.ErrorType, s.host.Status.ErrorMessage = bmov1alpha1.ProvisioningError, "image is broken"
	g.Expect(hostFact(s)).To(Equal(fact.Fact{Status: metav1.ConditionFalse, Reason: bootstrapv1.HostErrorReason,
		Message: "BareMetalHost host-0 in state provisioned reports provisioning error: image is broken"}))
	s.host.Status.ErrorType, s.host.Status.ErrorMessage = "", ""
	s.host.Status.Conditions = []metav1.Condition{
		{Type: bmov1alpha1.ManageableCondition, Status: metav1.ConditionFalse, Reason: bmov1alpha1.PowerFailureReason},
	}
	g.Expect(hostFact(s)).To(Equal(fact.Fact{Status: metav1.ConditionFalse, Reason: bootstrapv1.HostErrorReason,
		Message: "BareMetalHost host-0 in state provisioned reports power management error: the BMC does not switch the host's power"}))
	s.host.Status.Conditions[0].Reason = "Registering"
	g.Expect(hostFact(s).Reason).To(Equal(bootstrapv1.HostHealthyReason), "it registers again, which is no failure")
	s.host = nil
	g.Expect(hostFact(s).Reason).To(Equal(bootstrapv1.HostMissingReason))
	s.infraMachine.SetAnnotations(nil)
	g.Expect(hostFact(s).Reason).To(Equal(bootstrapv1.HostNotAssociatedReason))
	g.Expect(unstructured.SetNestedSlice(s.infraMachine.Object, []any{map[string]any{
		"type": "AssociateBMH", "status": "False", "reason": "AssociateBMHFailed", "message": "none is free. Requeuing. Later.",
	}}, "status", "conditions")).To(Succeed())
	g.Expect(hostFact(s)).To(Equal(fact.Fact{Status: metav1.ConditionFalse, Reason: bootstrapv1.NoHostAvailableReason,
		Message: "Metal3Machine m-0 has no host: none is free: look at the states and the errors of the BareMetalHosts"}))
}

func TestDecideDeparture(t *testing.T) {
	atHook := func(s *scope) {
		s.machine.DeletionTimestamp = ptr.To(later)
		s.machine.Status.Conditions = []metav1.Condition{
			{Type: clusterv1.MachineDeletingCondition, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason},
		}
	}
	tests := []struct {
		name   string
		change func(*scope)
		agents int
		unhook bool
	}{
		{name: "the Node is being drained", change: func(s *scope) { s.machine.DeletionTimestamp = ptr.To(later) }},
		{name: "the claimed Agent goes first", change: atHook, agents: 1},
		{name: "an unclaimed Agent of the host goes too", change: func(s *scope) { atHook(s); s.agents[0].Annotations = nil }, agents: 1},
		{name: "an unclaimed Agent of the Machine's own InfraEnv goes too", change: func(s *scope) {
			atHook(s)
			s.config.Spec.HostIdentity, s.agents[0].Annotations, s.host = bootstrapv1.HostIdentityInfraEnv, nil, nil
		}, agents: 1},
		{
			name:   "another Machine's Agent stays",
			change: func(s *scope) { atHook(s); s.agents[0].Annotations[bootstrapv1.ClaimAnnotation] = "m-1/x" }, unhook: true,
		},
		{name: "then the hook", change: func(s *scope) { atHook(s); s.agents = nil }, unhook: true},
		{name: "once", change: func(s *scope) { atHook(s); s.agents, s.machine.Annotations = nil, nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			tt.change(s)
			d := decideDeparture(s)
			g.Expect(d.agents).To(HaveLen(tt.agents))
			if tt.agents > 0 {
				g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.WaitingForAgentDeletionReason))
			}
			g.Expect(d.unhook).To(Equal(tt.unhook))
		})
	}
}
