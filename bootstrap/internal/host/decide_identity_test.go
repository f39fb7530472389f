// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

func serial(h *bmov1alpha1.BareMetalHost, s string) {
	h.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: s}}
}

// unclaimed takes the claim back from the discovered Agent, which stays recorded.
func unclaimed(s *scope) { s.agents[0].Annotations = nil }

// isBound makes the discovered Agent one that was bound a while ago and is ready.
func isBound(s *scope) {
	bound(&s.agents[0], assisted.AgentStateKnown,
		assisted.Condition{Type: assisted.ConditionBound, Status: corev1.ConditionTrue},
		assisted.Condition{Type: assisted.ConditionSpecSynced, Status: corev1.ConditionTrue},
		assisted.Condition{Type: assisted.ConditionRequirementsMet, Status: corev1.ConditionTrue, Reason: assisted.ReasonAgentIsReady})
}

// secondAgent registers another host that reports the addresses of the discovered one.
func secondAgent(s *scope, serialNumber string) {
	second := s.agents[0].DeepCopy()
	second.Name, second.Annotations, second.Spec, second.Status.Conditions = "a-1", nil, assisted.AgentSpec{}, nil
	second.Status.Inventory.SystemVendor.SerialNumber = serialNumber
	s.agents = append(s.agents, *second)
}

// ofOtherInfrastructure makes the Machine one of other infrastructure than Metal3, with an InfraEnv of its own.
func ofOtherInfrastructure(s *scope) {
	s.config.Spec.HostIdentity, s.host, s.hosts, s.infraMachine = bootstrapv1.HostIdentityInfraEnv, nil, nil, nil
	s.machine.Spec.InfrastructureRef.Kind = "DevMachine"
}

// withoutHost makes the Machine one of Metal3 that has an InfraEnv of its own and no BareMetalHost.
func withoutHost(s *scope) {
	s.config.Spec.HostIdentity, s.host, s.hosts = bootstrapv1.HostIdentityInfraEnv, nil, nil
}

func provisionedAt(s *scope, at time.Time) {
	s.host.Status.OperationHistory.Provision.Start = metav1.NewTime(at)
}

// TestWhoIsClaimed: what an Agent that has the host's identity has to be besides, before it is claimed.
func TestWhoIsClaimed(t *testing.T) {
	tests := []struct {
		name   string
		change func(*scope)
		claim  bool
		reason string
		says   string
	}{
		{
			name: "registered after the provisioning began", change: func(s *scope) { provisionedAt(s, born.Time) }, claim: true,
			reason: bootstrapv1.HostRecognizedReason,
		},
		{name: "the two clocks differ by less than a minute", change: func(s *scope) { provisionedAt(s, later.Add(59*time.Second)) },
			claim: true, reason: bootstrapv1.HostRecognizedReason},
		{name: "older than the provisioning", change: func(s *scope) { provisionedAt(s, later.Add(61*time.Second)) },
			reason: bootstrapv1.WaitingForAgentReason, says: "Agent a-0 is of an earlier life of the host"},
		{name: "older than the provisioning of another life, and claimed since", change: func(s *scope) {
			s.agents[0].Annotations = map[string]string{bootstrapv1.ClaimAnnotation: s.claim()}
			provisionedAt(s, later.Add(time.Hour))
		}, reason: bootstrapv1.HostRecognizedReason},
		{name: "registered between the first boot and the host's being provisioned", change: func(s *scope) {
			provisionedAt(s, later.Add(-20*time.Second))
			s.host.Status.OperationHistory.Provision.End = metav1.NewTime(later.Add(20 * time.Second))
		}, claim: true, reason: bootstrapv1.HostRecognizedReason},
		{name: "the host is still being provisioned", change: func(s *scope) { s.host.Status.Provisioning.State = bmov1alpha1.StateProvisioning },
			reason: bootstrapv1.WaitingForHostReason, says: "BareMetalHost host-0 is being provisioned: Agent a-0"},
		{name: "the host is still being provisioned, and the Machine has an InfraEnv of its own", change: func(s *scope) {
			s.config.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
			s.host.Status.Provisioning.State = bmov1alpha1.StateProvisioning
		}, reason: bootstrapv1.WaitingForHostReason},
		{name: "the Machine has an InfraEnv of its own, and is of other infrastructure", change: ofOtherInfrastructure, claim: true,
			reason: bootstrapv1.HostRecognizedReason},
		{name: "the Machine has an InfraEnv of its own, and no BareMetalHost yet", change: withoutHost,
			reason: bootstrapv1.WaitingForHostReason, says: "Machine m-0 has no BareMetalHost"},
		{name: "the config is being deleted", change: func(s *scope) { s.config.DeletionTimestamp = &later },
			reason: bootstrapv1.WaitingForAgentReason, says: "delete Machine m-0 as well"},
		{name: "the config is being deleted, and the Machine has an InfraEnv of its own", change: func(s *scope) {
			s.config.DeletionTimestamp, s.config.Spec.HostIdentity = &later, bootstrapv1.HostIdentityInfraEnv
		}, reason: bootstrapv1.WaitingForAgentReason, says: "delete Machine m-0 as well"},
		{
			name:   "the Machine has a Node",
			change: func(s *scope) { s.machine.Spec.ProviderID = "metal3://ns/host-0/m-0" },
			reason: bootstrapv1.NodeJoinedReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			unclaimed(s)
			tt.change(s)
			s.allAgents = s.agents
			d := decide(s)
			claims := d.claim != nil || d.bind != nil && d.bind.claim == s.claim()
			g.Expect(claims).To(Equal(tt.claim), d.recognized.Message)
			g.Expect(d.recognized.Reason).To(Equal(tt.reason), d.recognized.Message)
			g.Expect(d.recognized.Message).To(ContainSubstring(tt.says))
			bound := s.agents[0].Annotations[bootstrapv1.ClaimAnnotation] == s.claim()
			g.Expect(d.bind != nil).To(Equal(bound || claims), "nobody is bound without a claim")
			g.Expect(d.approve == nil && !d.reboot).To(BeTrue())
		})
	}
}

// TestNoNodeWithoutItsHost: Metal3 finds a Node by the UID of its BareMetalHost, so an Agent that is claimed is not bound without that.
func TestNoNodeWithoutItsHost(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	host := s.host
	withoutHost(s)
	d := decide(s)
	g.Expect(d.bind).To(BeNil())
	g.Expect(d.installed.Reason).To(Equal(bootstrapv1.WaitingForHostReason), d.installed.Message)
	s.host = host
	g.Expect(decide(s).bind.labels).To(HaveKeyWithValue(metal3.NodeUIDLabel, string(host.UID)))
	isBound(s)
	s.host = nil
	g.Expect(decide(s).installed.Reason).To(Equal(bootstrapv1.AgentReadyReason), "AgentInstalled says that the Agent is ready")
}

// TestDoubt: what becomes of a claimed Agent when another one turns up with the identity of its host.
func TestDoubt(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*scope)
		withdraw bool
		release  bool
		reason   string
		says     []string
	}{
		{
			name:     "bound and approved: taken back",
			change:   isBound,
			withdraw: true,
			reason:   bootstrapv1.SeveralAgentsReason,
			says: []string{
				"a-0 (MAC aa:00", "a-1 (MAC aa:00", "BareMetalHost host-0", "what Agent a-0 was given is taken back",
				bootstrapv1.VouchedAgentAnnotation,
			},
		},
		{
			name: "bound, and its disk is owed: taken back", change: func(s *scope) { isBound(s); s.agents[0].Spec.Approved = false },
			withdraw: true, reason: bootstrapv1.SeveralAgentsReason,
		},
		{name: "taken back before", change: func(*scope) {}, reason: bootstrapv1.SeveralAgentsReason},
		{name: "the installation has begun", change: func(s *scope) {
			isBound(s)
			s.install.Annotations = map[string]string{assisted.DayOneAgentsAnnotation: "a-0"}
			s.install.Status.Conditions[0].Reason, s.install.Status.DebugInfo.State = "InstallationInProgress", assisted.ClusterStatePreparing
		}, reason: bootstrapv1.SeveralAgentsReason, says: []string{"a-0 (MAC", "a-1 (MAC",
			"The installation of Agent a-0 has begun, and nothing that runs is torn down"}},
		{name: "its own installation has begun", change: func(s *scope) {
			bound(
				&s.agents[0], "installing",
				assisted.Condition{Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationInProgress},
			)
		}, reason: bootstrapv1.SeveralAgentsReason},
		{name: "installed", change: func(s *scope) {
			bound(&s.agents[0], "installed", assisted.Condition{Type: assisted.ConditionInstalled, Status: corev1.ConditionTrue})
		}, reason: bootstrapv1.HostRecognizedReason, says: []string{"Agent a-1", "BareMetalHost host-0"}},
		{
			name: "the Machine has a Node", change: func(s *scope) { isBound(s); s.machine.Status.NodeRef.Name = "m-0" },
			reason: bootstrapv1.SeveralAgentsReason,
		},
		{name: "somebody vouches for the other", change: func(s *scope) {
			isBound(s)
			s.host.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: "a-1"}
		}, withdraw: true, release: true, reason: bootstrapv1.SeveralAgentsReason, says: []string{"vouches for Agent a-1"}},
		{name: "the other has a serial number that the claimed one never reported", change: func(s *scope) {
			isBound(s)
			serial(s.host, "REAL-1")
			s.agents[1].Status.Inventory.SystemVendor.SerialNumber = "REAL-1"
		}, withdraw: true, release: true, reason: bootstrapv1.DuplicateSerialNumberReason, says: []string{
			"is not the hardware that Agent a-0 reports", "Agent a-1 has the host's identity"}},
		{name: "registered through another InfraEnv since", change: func(s *scope) {
			isBound(s)
			s.agents = s.agents[:1]
			s.agents[0].Labels = map[string]string{assisted.InfraEnvLabel: "other"}
		}, withdraw: true, reason: bootstrapv1.AgentNotRecognizedReason, says: []string{"through InfraEnv other", "the Machine's is demo-x"}},
		{name: "two Agents in the Machine's own InfraEnv", change: func(s *scope) {
			isBound(s)
			s.config.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
		}, withdraw: true, reason: bootstrapv1.SeveralAgentsReason, says: []string{"a-0 (MAC", "a-1 (MAC", "is taken back"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			secondAgent(s, "")
			tt.change(s)
			s.allAgents = s.agents
			d := decide(s)
			g.Expect(d.recognized.Reason).To(Equal(tt.reason), d.recognized.Message)
			for _, text := range tt.says {
				g.Expect(d.recognized.Message).To(ContainSubstring(text))
			}
			g.Expect(d.withdraw != nil).To(Equal(tt.withdraw))
			g.Expect(d.release).To(Equal(tt.release))
			g.Expect(d.disputed).To(BeTrue(), "an event tells")
			g.Expect(d.claim == nil && d.bind == nil && d.approve == nil && !d.reboot && d.leftover == nil).To(BeTrue())
		})
	}
}

// TestTypoElsewhere: a new BareMetalHost with a mistyped MAC address keeps nobody waiting who is claimed.
func TestTypoElsewhere(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	isBound(s)
	s.agents[0].Spec.Approved = false
	s.agents[0].Annotations[bootstrapv1.InstallationDiskAnnotation] = "disk-1"
	s.agents[0].Status.Inventory.Disks = []assisted.Disk{{ID: "disk-1"}}
	typo := bmov1alpha1.BareMetalHost{}
	typo.Name, typo.Namespace, typo.Spec.BootMACAddress = "new-host", "ns", s.host.Spec.BootMACAddress
	s.hosts = append(s.hosts, typo)
	s.host = &s.hosts[0]
	d := decide(s)
	g.Expect(d.approve).NotTo(BeNil(), d.recognized.Message)
	g.Expect(d.recognized.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(d.recognized.Message).To(ContainSubstring("matches BareMetalHosts host-0, new-host"))
}

// TestNodeIsNeverInstalledAgain: an Agent of a Machine that has a Node is neither bound nor approved, whatever became of its
// ClusterDeployment.
func TestNodeIsNeverInstalledAgain(t *testing.T) {
	node := func(s *scope) {
		s.machine.Status.NodeRef.Name, s.machine.Spec.ProviderID = "m-0", "metal3://ns/host-0/m-0"
	}
	moved := func(s *scope) { s.machine.Spec.ProviderID = "metal3://ns/host-0/m-0" }
	owed := func(s *scope) {
		isBound(s)
		s.agents[0].Spec.Approved = false
		s.agents[0].Annotations[bootstrapv1.InstallationDiskAnnotation] = "disk-1"
		s.agents[0].Status.Inventory.Disks = []assisted.Disk{{ID: "disk-1"}}
	}
	pending := func(stage string) func(*scope) {
		return func(s *scope) {
			bound(&s.agents[0], assisted.AgentStatePendingUserAction, assisted.Condition{
				Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationInProgress,
			})
			s.agents[0].Status.Progress.CurrentStage = stage
		}
	}
	ready := func(status metav1.ConditionStatus) func(*scope) {
		return func(s *scope) {
			conditions.Set(s.machine, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: "Test"})
		}
	}
	tests := []struct {
		name      string
		changes   []func(*scope)
		installed string
	}{
		{name: "has booted its image", changes: []func(*scope){node, pending(assisted.StageDone), ready(metav1.ConditionFalse)},
			installed: bootstrapv1.AgentPendingUserActionReason},
		{name: "has booted its disk again", changes: []func(*scope){node, pending(assisted.StageDone), ready(metav1.ConditionTrue)},
			installed: bootstrapv1.NodeJoinedReason},
		{name: "was not installed to the end", changes: []func(*scope){node, pending("Rebooting"), ready(metav1.ConditionTrue)},
			installed: bootstrapv1.AgentPendingUserActionReason},
		{name: "unbound, and the cluster takes hosts", changes: []func(*scope){worker, completed, node}, installed: bootstrapv1.NodeJoinedReason},
		{name: "moved here", changes: []func(*scope){worker, completed, moved}, installed: bootstrapv1.NodeJoinedReason},
		{name: "waits to be unbound from a ClusterDeployment that was made anew", changes: []func(*scope){node, func(s *scope) {
			s.agents[0].Status.DebugInfo.State, s.agents[0].Status.DebugInfo.StateInfo = "unbinding",
				"Host is waiting to be unbound from the cluster"
		}}, installed: bootstrapv1.NodeJoinedReason},
		{name: "bound, and its disk is owed", changes: []func(*scope){worker, completed, owed, node}, installed: bootstrapv1.NodeJoinedReason},
		{name: "installed", changes: []func(*scope){node, func(s *scope) {
			bound(&s.agents[0], "installed", assisted.Condition{Type: assisted.ConditionInstalled, Status: corev1.ConditionTrue})
		}}, installed: bootstrapv1.AgentInstalledReason},
		{name: "the service has not seen its end yet", changes: []func(*scope){node, func(s *scope) {
			bound(
				&s.agents[0], "installing",
				assisted.Condition{Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationInProgress},
			)
		}}, installed: bootstrapv1.AgentInstallingReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			for _, change := range tt.changes {
				change(s)
			}
			d := decide(s)
			g.Expect(d.bind == nil && d.approve == nil && d.nudge == nil && d.withdraw == nil && !d.reboot).To(BeTrue())
			g.Expect(d.installed.Reason).To(Equal(tt.installed), d.installed.Message)
		})
	}
}

// TestEarlierLife plays the passes that take an Agent of an earlier life from a host that runs this Machine's image: recorded and deleted,
// rebooted.
func TestEarlierLife(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
	unclaimed(s)
	s.machine.CreationTimestamp, s.agents[0].CreationTimestamp = later, born
	d := decide(s)
	g.Expect(d.leftover).NotTo(BeNil())
	g.Expect(d.record).To(Equal("a-0"), "it is saved before: a crash after the deletion would leave a host that nobody reboots")
	s.config.Annotations[bootstrapv1.AgentAnnotation] = d.record
	s.agents = nil
	g.Expect(decide(s).reboot).To(BeTrue(), "the host is frozen by the deletion of its Agent")
}

// TestChecksWhileBinding: a host that was just bound has to report all it has reported before, which takes some minutes.
func TestChecksWhileBinding(t *testing.T) {
	boundSince := func(age time.Duration) func(*scope) {
		return func(s *scope) {
			s.agents[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(s.now.Add(-age))
		}
	}
	tests := []struct {
		name   string
		change func(*scope)
		reason string
		again  time.Duration
	}{
		{
			name: "not bound yet", change: func(s *scope) { s.agents[0].Status.Conditions[0].Status = corev1.ConditionFalse },
			reason: bootstrapv1.AgentBindingReason,
		},
		{name: "bound two minutes ago", change: boundSince(2 * time.Minute), reason: bootstrapv1.AgentBindingReason, again: 3 * time.Minute},
		{name: "bound long ago", change: boundSince(5 * time.Minute), reason: bootstrapv1.AgentValidationsFailingReason},
		{name: "lost while it binds", change: func(s *scope) {
			boundSince(time.Minute)(s)
			s.agents[0].Status.Conditions = append(
				s.agents[0].Status.Conditions, assisted.Condition{Type: assisted.ConditionConnected, Status: corev1.ConditionFalse},
			)
		}, reason: bootstrapv1.AgentDisconnectedReason, again: 4 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			bound(&s.agents[0], "insufficient", assisted.Condition{Type: assisted.ConditionBound, Status: corev1.ConditionTrue})
			s.agents[0].Status.ValidationsInfo = common.ValidationsStatus{
				"hardware": {{ID: "has-inventory", Status: "failure", Message: "Inventory has not been received for the host"}},
			}
			tt.change(s)
			d := decide(s)
			g.Expect(d.installed.Reason).To(Equal(tt.reason), d.installed.Message)
			g.Expect(d.lookAgain).To(Equal(tt.again))
		})
	}
}
