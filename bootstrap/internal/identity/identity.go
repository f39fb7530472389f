// SPDX-License-Identifier: Apache-2.0

// Package identity recognises hosts: it compares what an Agent says of itself with what Metal3 knows of BareMetalHosts. It is recognition,
// not attestation, and it is pure (DESIGN D6).
package identity

import (
	"fmt"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// maxListed bounds how many Agents a message names, so that a message stays readable and its size bounded.
const maxListed = 3

// Verdict says which Agent is a Machine's host, or why none is.
type Verdict struct {
	// Agent is the recognised Agent; nil when there is none.
	Agent *assisted.Agent
	// Reason is one of the reasons of bootstrapv1.HostRecognizedCondition; empty when an Agent was recognised.
	Reason string
	// Message says why none was recognised, naming host, Agents and what to do.
	Message string
}

// Matches reports whether the Agent's inventory is that of the host, among all hosts of the namespace: by the boot MAC, or by another
// inspected MAC that no other host has; and the serial numbers must agree where both sides know a real one.
func Matches(agent *assisted.Agent, host *bmov1alpha1.BareMetalHost, hosts []bmov1alpha1.BareMetalHost) bool {
	return matchesMAC(agent, host, hosts) && serialsAgree(agent, host)
}

func matchesMAC(agent *assisted.Agent, host *bmov1alpha1.BareMetalHost, hosts []bmov1alpha1.BareMetalHost) bool {
	macs := agent.MACAddresses()
	if boot := metal3.BootMAC(host); boot != "" && slices.Contains(macs, boot) {
		return true
	}
	return slices.ContainsFunc(metal3.InspectedMACs(host), func(mac string) bool {
		return slices.Contains(macs, mac) && !sharedMAC(mac, host, hosts)
	})
}

func sharedMAC(mac string, host *bmov1alpha1.BareMetalHost, hosts []bmov1alpha1.BareMetalHost) bool {
	return slices.ContainsFunc(hosts, func(other bmov1alpha1.BareMetalHost) bool {
		return other.Name != host.Name && (metal3.BootMAC(&other) == mac || slices.Contains(metal3.InspectedMACs(&other), mac))
	})
}

func serialsAgree(agent *assisted.Agent, host *bmov1alpha1.BareMetalHost) bool {
	known, seen := metal3.SerialNumber(host), metal3.NormalizeSerial(agent.Status.Inventory.SystemVendor.SerialNumber)
	return known == "" || seen == "" || known == seen
}

// HostsMatching returns the names of the hosts that the Agent's inventory matches, in the order of hosts.
func HostsMatching(agent *assisted.Agent, hosts []bmov1alpha1.BareMetalHost) []string {
	var names []string
	for i := range hosts {
		if Matches(agent, &hosts[i], hosts) {
			names = append(names, hosts[i].Name)
		}
	}
	return names
}

// Request is what Recognize looks at. All lists are of one namespace, sorted by name.
type Request struct {
	// Host is the BareMetalHost that the Machine consumes.
	Host *bmov1alpha1.BareMetalHost
	// Hosts are all BareMetalHosts.
	Hosts []bmov1alpha1.BareMetalHost
	// Agents are the Agents of the Machine's InfraEnv.
	Agents []assisted.Agent
	// Claim is the Machine's claim; see assisted.Claim.
	Claim string
	// LivingClaims are the claims of Machines that exist, but for the Machine's own.
	LivingClaims []string
}

// Recognize finds the Agent of the Machine's host. A claimed Agent stays recognised while its inventory is empty, as it is while it binds,
// and after its installation, when the inventory no longer changes.
func Recognize(r Request) Verdict {
	if twin := serialTwin(r); twin != "" {
		return Verdict{Reason: bootstrapv1.DuplicateSerialNumberReason, Message: fmt.Sprintf(
			"BareMetalHosts %s and %s both have serial number %q, so both register as one Agent: correct the serial number in the firmware of one of them",
			r.Host.Name, twin, r.Host.Status.HardwareDetails.SystemVendor.SerialNumber)}
	}
	var matching []*assisted.Agent
	for i := range r.Agents {
		agent := &r.Agents[i]
		switch claimed := agent.Annotations[bootstrapv1.ClaimAnnotation] == r.Claim; {
		case claimed && (!agent.HasInventory() || agent.Installed()):
			return Verdict{Agent: agent}
		case Matches(agent, r.Host, r.Hosts):
			matching = append(matching, agent)
		case claimed:
			return Verdict{Reason: bootstrapv1.DuplicateSerialNumberReason, Message: fmt.Sprintf(
				"Agent %s was claimed for BareMetalHost %s and now reports other hardware (%s): two hosts register with one identity; correct the serial number or system UUID in the firmware of one of them",
				agent.Name, r.Host.Name, describe(agent))}
		}
	}
	switch len(matching) {
	case 0:
		return unmatched(r)
	case 1:
		return single(r, matching[0])
	default:
		names := make([]string, len(matching))
		for i, agent := range matching {
			names[i] = agent.Name
		}
		return Verdict{Reason: bootstrapv1.SeveralAgentsReason, Message: fmt.Sprintf(
			"Agents %s all match BareMetalHost %s, so none of them is approved: find the host that uses its MAC address or serial number, power it off and delete its Agent",
			strings.Join(names, ", "), r.Host.Name)}
	}
}

// single checks the only Agent that matches the host: it must match no other host and be claimed for no other Machine that exists.
func single(r Request, agent *assisted.Agent) Verdict {
	if names := HostsMatching(agent, r.Hosts); len(names) > 1 {
		return Verdict{Reason: bootstrapv1.SeveralHostsReason, Message: fmt.Sprintf(
			"Agent %s (%s) matches BareMetalHosts %s, so it is not approved: correct spec.bootMACAddress of the wrong one",
			agent.Name, describe(agent), strings.Join(names, ", "))}
	}
	if claim := agent.Annotations[bootstrapv1.ClaimAnnotation]; claim != r.Claim && slices.Contains(r.LivingClaims, claim) {
		other, _, _ := agent.ClaimedFor()
		return Verdict{Reason: bootstrapv1.AgentClaimedByOtherReason, Message: fmt.Sprintf(
			"Agent %s (%s) matches BareMetalHost %s and is claimed for Machine %s: two hosts register with one identity; correct the serial number or system UUID in the firmware of one of them",
			agent.Name, describe(agent), r.Host.Name, other)}
	}
	return Verdict{Agent: agent}
}

// unmatched says why no Agent was recognised.
func unmatched(r Request) Verdict {
	if !metal3.Provisioned(r.Host) {
		return Verdict{Reason: bootstrapv1.WaitingForHostReason, Message: fmt.Sprintf(
			"BareMetalHost %s is in state %s: waiting for it to be booted", r.Host.Name, metal3.State(r.Host))}
	}
	var strangers []string
	for i := range r.Agents {
		agent := &r.Agents[i]
		if agent.HasInventory() && agent.Annotations[bootstrapv1.ClaimAnnotation] == "" && len(HostsMatching(agent, r.Hosts)) == 0 && !hasSerialOfOther(agent, r) {
			strangers = append(strangers, fmt.Sprintf("%s (%s)", agent.Name, describe(agent)))
		}
	}
	if len(strangers) == 0 {
		return Verdict{Reason: bootstrapv1.WaitingForAgentReason, Message: fmt.Sprintf(
			"BareMetalHost %s was booted and its Agent has not registered: if that takes more than 30 minutes, look at the host's console", r.Host.Name)}
	}
	more := ""
	if len(strangers) > maxListed {
		more = fmt.Sprintf(" and %d more", len(strangers)-maxListed)
		strangers = strangers[:maxListed]
	}
	return Verdict{Reason: bootstrapv1.AgentNotRecognizedReason, Message: fmt.Sprintf(
		"BareMetalHost %s (%s) was booted and no Agent has its identity; Agent %s%s matches no BareMetalHost: if it is this host, correct spec.bootMACAddress of the BareMetalHost",
		r.Host.Name, describeHost(r.Host), strings.Join(strangers, ", "), more)}
}

// hasSerialOfOther reports whether the Agent has the serial number of another host than the Machine's: it is that one's problem.
func hasSerialOfOther(agent *assisted.Agent, r Request) bool {
	serial := metal3.NormalizeSerial(agent.Status.Inventory.SystemVendor.SerialNumber)
	return serial != "" && serial != metal3.SerialNumber(r.Host) && slices.ContainsFunc(r.Hosts, func(h bmov1alpha1.BareMetalHost) bool {
		return metal3.SerialNumber(&h) == serial
	})
}

// serialTwin returns the name of another host in use whose real serial number is that of the Machine's host (ASSISTED fact 9).
func serialTwin(r Request) string {
	serial := metal3.SerialNumber(r.Host)
	if serial == "" {
		return ""
	}
	for i := range r.Hosts {
		other := &r.Hosts[i]
		if other.Name != r.Host.Name && other.Spec.ConsumerRef != nil && metal3.SerialNumber(other) == serial {
			return other.Name
		}
	}
	return ""
}

func describe(agent *assisted.Agent) string {
	return fmt.Sprintf("MAC %s, serial number %q", strings.Join(agent.MACAddresses(), " "), agent.Status.Inventory.SystemVendor.SerialNumber)
}

func describeHost(host *bmov1alpha1.BareMetalHost) string {
	serial := ""
	if host.Status.HardwareDetails != nil {
		serial = host.Status.HardwareDetails.SystemVendor.SerialNumber
	}
	return fmt.Sprintf("boot MAC %s, serial number %q", metal3.BootMAC(host), serial)
}
