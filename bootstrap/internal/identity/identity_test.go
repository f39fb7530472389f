// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const ours = "m-0/uid-0"

type hostOption func(*bmov1alpha1.BareMetalHost)

func host(name, bootMAC, serial string, options ...hostOption) bmov1alpha1.BareMetalHost {
	h := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.Spec.BootMACAddress = bootMAC
	h.Spec.ConsumerRef = &corev1.ObjectReference{Name: name}
	h.Status.Provisioning.State = bmov1alpha1.StateProvisioned
	h.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: serial}}
	for _, o := range options {
		o(&h)
	}
	return h
}

func inspected(macs ...string) hostOption {
	return func(h *bmov1alpha1.BareMetalHost) {
		for _, mac := range macs {
			h.Status.HardwareDetails.NIC = append(h.Status.HardwareDetails.NIC, bmov1alpha1.NIC{MAC: mac})
		}
	}
}

// vouching is what somebody does who knows that an Agent is the host.
func vouching(agent string) hostOption {
	return func(h *bmov1alpha1.BareMetalHost) {
		h.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: agent}
	}
}

func free(h *bmov1alpha1.BareMetalHost) { h.Spec.ConsumerRef = nil }

func booting(h *bmov1alpha1.BareMetalHost) {
	h.Status.Provisioning.State = bmov1alpha1.StateProvisioning
}

func agent(name, serial string, macs ...string) assisted.Agent {
	a := assisted.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.Status.Inventory.SystemVendor.SerialNumber = serial
	for _, mac := range macs {
		a.Status.Inventory.Interfaces = append(a.Status.Inventory.Interfaces, assisted.Interface{MACAddress: mac})
	}
	return a
}

func claimed(a assisted.Agent, claim string) assisted.Agent {
	a.Annotations = map[string]string{bootstrapv1.ClaimAnnotation: claim}
	return a
}

func boundTo(a assisted.Agent) assisted.Agent {
	a.Spec.ClusterDeploymentName = &assisted.ClusterReference{Name: "cp"}
	return a
}

func installed(a assisted.Agent) assisted.Agent {
	a.Status.Conditions = []assisted.Condition{{Type: assisted.ConditionInstalled, Status: corev1.ConditionTrue}}
	return a
}

func TestRecognize(t *testing.T) {
	tests := []struct {
		name   string
		hosts  []bmov1alpha1.BareMetalHost
		agents []assisted.Agent
		living []string
		agent  string
		reason string
		// doubted is the claimed Agent of which it is not certain any more that it is the host.
		doubted string
		// note is part of what is said of a recognised Agent.
		note string
	}{
		{name: "boot MAC matches, whatever its case", hosts: []bmov1alpha1.BareMetalHost{host("h0", "AA:00", "s0")},
			agents: []assisted.Agent{agent("a0", "S0 ", "aa:00", "bb:00")}, agent: "a0"},
		{name: "an inspected MAC matches that no other host has", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", inspected("aa:01"))},
			agents: []assisted.Agent{agent("a0", "", "aa:01")}, agent: "a0"},
		{name: "an inspected MAC that another host has proves nothing",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", inspected("cc:00")), host("h1", "aa:01", "", inspected("cc:00"))},
			agents: []assisted.Agent{agent("a0", "", "cc:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "serial numbers that differ veto the MAC", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0")},
			agents: []assisted.Agent{agent("a0", "s1", "aa:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "a vendor's placeholder is no serial number", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "To Be Filled By O.E.M.")},
			agents: []assisted.Agent{agent("a0", "s1", "aa:00")}, agent: "a0"},
		{name: "wrong boot MAC", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0")},
			agents: []assisted.Agent{agent("a0", "s0", "ff:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "two Agents with one MAC", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			agents: []assisted.Agent{agent("a0", "x", "aa:00"), agent("a1", "y", "aa:00")}, reason: bootstrapv1.SeveralAgentsReason},
		{name: "an Agent that is two hosts", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", ""), host("h1", "aa:01", "")},
			agents: []assisted.Agent{agent("a0", "", "aa:00", "aa:01")}, reason: bootstrapv1.SeveralHostsReason},
		{
			name:   "two hosts in use with one serial number, of which one has registered",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "S0")},
			agents: []assisted.Agent{agent("a0", "s0", "aa:00")}, reason: bootstrapv1.DuplicateSerialNumberReason,
		},
		{
			name:   "two hosts with one serial number, seen from the one that has no Agent",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "s0")},
			agents: []assisted.Agent{agent("a1", "s0", "aa:01")}, reason: bootstrapv1.DuplicateSerialNumberReason,
		},
		{
			name:   "two hosts with one serial number that register as two Agents",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "s0")},
			agents: []assisted.Agent{agent("a0", "s0", "aa:00"), agent("a1", "s0", "aa:01")}, agent: "a0",
		},
		{
			name:   "two hosts with one serial number, of which one was let in before the other was used",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "s0")},
			agents: []assisted.Agent{boundTo(claimed(agent("a0", "s0", "aa:00"), ours))}, agent: "a0",
		},
		{
			name:   "after they took turns in one Agent it is not bound again",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "s0")},
			agents: []assisted.Agent{claimed(agent("a0", "s0", "aa:00"), ours)}, reason: bootstrapv1.DuplicateSerialNumberReason,
		},
		{
			name:   "somebody vouches for the Agent of a host with the serial number of another",
			agents: []assisted.Agent{agent("a0", "s0", "aa:00")}, agent: "a0",
			hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0", vouching("a0")), host("h1", "aa:01", "s0")},
		},
		{name: "a serial number that is known has to be reported", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0")},
			agents: []assisted.Agent{agent("a0", "", "aa:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "a placeholder does not stand for one that is known", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0")},
			agents: []assisted.Agent{agent("a0", "Unspecified System Serial Number", "aa:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{
			name:  "somebody vouches for an Agent that reports neither",
			hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0", vouching("a0"))}, agents: []assisted.Agent{agent("a0", "", "ff:00")},
			agent: "a0",
		},
		{name: "somebody vouches for one of two", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", vouching("a1"))},
			agents: []assisted.Agent{agent("a0", "", "aa:00"), agent("a1", "", "aa:00")}, agent: "a1"},
		{
			name:   "an Agent that is vouched for is no other host",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", ""), host("h1", "aa:01", "", vouching("a0"))},
			agents: []assisted.Agent{agent("a0", "", "aa:00")}, reason: bootstrapv1.WaitingForAgentReason,
		},
		{
			name:   "two hosts vouch for one Agent",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", vouching("a0")), host("h1", "aa:01", "", vouching("a0"))},
			agents: []assisted.Agent{agent("a0", "", "aa:00")}, reason: bootstrapv1.SeveralHostsReason,
		},
		{
			name:  "somebody vouches for another Agent than the claimed one",
			hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", vouching("a1"))},
			agents: []assisted.Agent{
				claimed(agent("a0", "", "aa:00"), ours), agent("a1", "", "aa:00"),
			},
			reason:  bootstrapv1.SeveralAgentsReason,
			doubted: "a0",
		},
		{
			name:  "claimed, and another one with its identity",
			hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			agents: []assisted.Agent{
				claimed(agent("a0", "", "aa:00"), ours), agent("a1", "", "aa:00"),
			},
			reason:  bootstrapv1.SeveralAgentsReason,
			doubted: "a0",
		},
		{name: "claimed and installed, and another one with its identity", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			agents: []assisted.Agent{installed(claimed(agent("a0", "", "aa:00"), ours)), agent("a1", "", "aa:00")}, agent: "a0",
			note: "Agent a1 (MAC aa:00, serial number \"\") matches BareMetalHost h0 too"},
		{
			name:   "claimed, and a new BareMetalHost with its boot MAC",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", ""), host("h1", "aa:00", "", free)},
			agents: []assisted.Agent{claimed(agent("a0", "", "aa:00"), ours)}, agent: "a0", note: "matches BareMetalHosts h0, h1",
		},
		{
			name:   "claimed by an inspected MAC, and a new BareMetalHost that boots from it",
			agents: []assisted.Agent{claimed(agent("a0", "", "aa:01"), ours)}, agent: "a0",
			hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", inspected("aa:01")), host("h1", "aa:01", "", free)},
		},
		{
			name:   "a host that is not in use may have the same serial number",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "s0", free)},
			agents: []assisted.Agent{agent("a0", "s0", "aa:00")}, agent: "a0",
		},
		{
			name: "claimed by another Machine that lives", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			living: []string{"m-1/uid-1"}, agents: []assisted.Agent{claimed(agent("a0", "", "aa:00"), "m-1/uid-1")},
			reason: bootstrapv1.AgentClaimedByOtherReason,
		},
		{name: "claimed and binding: no inventory", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			agents: []assisted.Agent{claimed(agent("a0", ""), ours)}, agent: "a0"},
		{name: "claimed, and now another host's inventory", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			agents: []assisted.Agent{claimed(agent("a0", "", "ff:00"), ours)}, reason: bootstrapv1.DuplicateSerialNumberReason, doubted: "a0"},
		{name: "claimed and installed: the inventory no longer counts", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")},
			agents: []assisted.Agent{installed(claimed(agent("a0", "", "ff:00"), ours))}, agent: "a0"},
		{name: "nobody there yet", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "")}, reason: bootstrapv1.WaitingForAgentReason},
		{name: "another host's Agent is no stranger", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", ""), host("h1", "aa:01", "")},
			agents: []assisted.Agent{agent("a1", "", "aa:01")}, reason: bootstrapv1.WaitingForAgentReason},
		{
			name:   "a stranger with another host's serial number is that one's problem",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0"), host("h1", "aa:01", "s1")},
			agents: []assisted.Agent{agent("a1", "s1", "ff:00")}, reason: bootstrapv1.WaitingForAgentReason,
		},
		{name: "a stranger with a serial number and addresses of its own is not the host", reason: bootstrapv1.WaitingForAgentReason,
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0", inspected("cc:00")), host("h1", "aa:01", "", inspected("cc:00"))},
			agents: []assisted.Agent{agent("a1", "s9", "ff:00", "cc:00")}},
		{name: "a stranger with another serial number and an inspected MAC of the host alone may be the host",
			hosts:  []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0", inspected("cc:00"))},
			agents: []assisted.Agent{agent("a1", "s9", "cc:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "a stranger without a serial number may be the host", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0")},
			agents: []assisted.Agent{agent("a1", "Default string", "ff:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "a stranger may be a host without a serial number", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "0000")},
			agents: []assisted.Agent{agent("a1", "s9", "ff:00")}, reason: bootstrapv1.AgentNotRecognizedReason},
		{name: "not booted yet", hosts: []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "", booting)}, reason: bootstrapv1.WaitingForHostReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got := Recognize(
				Request{Host: &tt.hosts[0], Hosts: tt.hosts, Agents: tt.agents, AllAgents: tt.agents, Claim: ours, LivingClaims: tt.living},
			)
			doubted := ""
			if got.Doubted != nil {
				doubted = got.Doubted.Name
			}
			g.Expect(doubted).To(Equal(tt.doubted))
			if tt.note == "" {
				g.Expect(got.Note).To(BeEmpty())
			}
			g.Expect(got.Note).To(ContainSubstring(tt.note))
			g.Expect(got.Reason).To(Equal(tt.reason), got.Message)
			if tt.agent == "" {
				g.Expect(got.Agent).To(BeNil())
				g.Expect(got.Message).To(ContainSubstring("BareMetalHost"), "the message names the host")
				return
			}
			g.Expect(got.Agent).NotTo(BeNil())
			g.Expect(got.Agent.Name).To(Equal(tt.agent))
		})
	}
}

func TestRecognizeNamesStrangersWithinBounds(t *testing.T) {
	g := NewWithT(t)
	hosts := []bmov1alpha1.BareMetalHost{host("h0", "aa:00", "s0")}
	agents := []assisted.Agent{
		agent("a0", "", "f0"), agent("a1", "", "f1"), agent("a2", "", "f2"), agent("a3", "", "f3"), agent("a4", "", "f4"),
	}
	got := Recognize(Request{Host: &hosts[0], Hosts: hosts, Agents: agents, Claim: ours})
	g.Expect(got.Message).To(Equal(`BareMetalHost h0 (boot MAC aa:00, serial number "s0") was booted and no Agent has its identity; ` +
		`Agent a0 (MAC f0, serial number ""), a1 (MAC f1, serial number ""), a2 (MAC f2, serial number "") and 2 more ` +
		`matches no BareMetalHost: if it is this host, replace the BareMetalHost by one with the right spec.bootMACAddress, ` +
		`or vouch for the Agent with annotation bootstrap.cluster.x-k8s.io/vouched-agent`))

	macs := make([]string, 2000)
	for i := range macs {
		macs[i] = fmt.Sprintf("f%d", i)
	}
	got = Recognize(Request{Host: &hosts[0], Hosts: hosts, Agents: []assisted.Agent{agent("a0", "", macs...)}, Claim: ours})
	g.Expect(got.Message).To(ContainSubstring(`Agent a0 (MAC f0 f1 f10 and 1997 more, serial number "")`))
	g.Expect(got.Message).To(HaveSuffix("with annotation bootstrap.cluster.x-k8s.io/vouched-agent"), "the remedy is not cut off")
}
