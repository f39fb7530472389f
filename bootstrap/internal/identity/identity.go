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

// MaxStrangers bounds how many Agents that match no host are counted. With more of them the message stays the same, whoever comes or goes:
// each of many hosts that wait would say so.
const MaxStrangers = 20

// Verdict says which Agent is a Machine's host, or why none is.
type Verdict struct {
	// Agent is the recognised Agent; nil when there is none.
	Agent *assisted.Agent
	// Note says of a recognised Agent what else claims to be its host. It takes nothing from the Agent.
	Note string
	// Reason is one of the reasons of bootstrapv1.HostRecognizedCondition; empty when an Agent was recognised.
	Reason string
	// Message says why none was recognised, naming host and Agents.
	Message string
	// Remedy says what to do about it; empty when Message does.
	Remedy string
	// Doubted is an Agent that was claimed for the Machine, and of which it is not certain any more that it is the host; nil when there is
	// none.
	Doubted *assisted.Agent
	// Release is true when the claim of Doubted goes too, because somebody vouches for another Agent.
	Release bool
}

// Request is what Recognize looks at. All lists are of one namespace, sorted by name. They may lack what cannot matter for the host: see
// index.Finder.Candidates.
type Request struct {
	// Host is the BareMetalHost that the Machine consumes.
	Host *bmov1alpha1.BareMetalHost
	// Hosts are the BareMetalHosts.
	Hosts []bmov1alpha1.BareMetalHost
	// Agents are the Agents of the Machine's InfraEnv, and those that are claimed for the Machine.
	Agents []assisted.Agent
	// AllAgents are the Agents of all InfraEnvs.
	AllAgents []assisted.Agent
	// Claim is the Machine's claim; see assisted.Claim.
	Claim string
	// LivingClaims are the claims of Machines that exist, but for the Machine's own.
	LivingClaims []string
}

// Recognize finds the Agent of the Machine's host. A claimed Agent stays recognised while its inventory is empty, as it is while it binds,
// and after its installation, when the inventory no longer changes.
func Recognize(r Request) Verdict {
	claimed, others := sortOut(r)
	switch {
	case claimed != nil:
		return confirm(r, claimed, others)
	case len(others) == 0:
		return unmatched(r)
	case len(others) == 1:
		return single(r, others[0])
	}
	return several(r.Host, nil, others)
}

// several is the verdict when more than one Agent matches the host, one of which may be claimed.
func several(host *bmov1alpha1.BareMetalHost, claimed *assisted.Agent, agents []*assisted.Agent) Verdict {
	return Verdict{Reason: bootstrapv1.SeveralAgentsReason, Doubted: claimed, Remedy: severalRemedy(host),
		Message: fmt.Sprintf("Agents %s all match BareMetalHost %s", describeAll(agents), host.Name)}
}

// Several is the verdict when more than one Agent registered where one was expected. The message says what they have in common.
func Several(agents []assisted.Agent, claim, common, remedy string) Verdict {
	v := Verdict{Reason: bootstrapv1.SeveralAgentsReason, Remedy: remedy}
	all := make([]*assisted.Agent, 0, len(agents))
	for i := range agents {
		all = append(all, &agents[i])
		if v.Doubted == nil && agents[i].Annotations[bootstrapv1.ClaimAnnotation] == claim {
			v.Doubted = &agents[i]
		}
	}
	v.Message = fmt.Sprintf("Agents %s all %s", describeAll(all), common)
	return v
}

// sortOut returns the Agent that is claimed for the Machine, and the other Agents that match its host.
func sortOut(r Request) (claimed *assisted.Agent, others []*assisted.Agent) {
	for i := range r.Agents {
		agent := &r.Agents[i]
		switch {
		case claimed == nil && agent.Annotations[bootstrapv1.ClaimAnnotation] == r.Claim:
			claimed = agent
		case Matches(agent, r.Host, r.Hosts):
			others = append(others, agent)
		}
	}
	return claimed, others
}

func severalRemedy(host *bmov1alpha1.BareMetalHost) string {
	return fmt.Sprintf(
		"find the host that uses the identity of BareMetalHost %s, power it off and delete its Agent, or vouch for the right Agent with "+
			"annotation %s of the BareMetalHost",
		host.Name, bootstrapv1.VouchedAgentAnnotation,
	)
}

// confirm looks at a claimed Agent again: what registers later can make it doubtful that the Agent is the host.
func confirm(r Request, claimed *assisted.Agent, others []*assisted.Agent) Verdict {
	vouched := vouchedAgent(r.Host)
	switch {
	case claimed.Installed():
		return Verdict{Agent: claimed, Note: rivals(r.Host, others)}
	case vouched != "" && vouched != claimed.Name:
		return Verdict{Reason: bootstrapv1.SeveralAgentsReason, Doubted: claimed, Release: true,
			Message: fmt.Sprintf("Agent %s (%s) was claimed for BareMetalHost %s, and its annotation %s vouches for Agent %s",
				claimed.Name, describe(claimed), r.Host.Name, bootstrapv1.VouchedAgentAnnotation, vouched),
			Remedy: "correct the annotation if it is wrong, and delete the Machine otherwise"}
	case claimed.HasInventory() && !stillMatches(claimed, r.Host):
		// If another Agent has the host's identity, the claimed one is not the host and loses its claim. If none has, two hosts take turns in one
		// Agent: the claim stays, or their Machines would take turns too.
		verdict := Verdict{
			Reason:  bootstrapv1.DuplicateSerialNumberReason,
			Doubted: claimed,
			Message: fmt.Sprintf(
				"Agent %s was claimed for BareMetalHost %s (%s) and now reports other hardware (%s), so two hosts register with one identity",
				claimed.Name, r.Host.Name, describeHost(r.Host), describe(claimed),
			),
			Remedy: "correct the serial number or system UUID in the firmware of one of them",
		}
		if len(others) > 0 {
			verdict.Release = true
			verdict.Message = fmt.Sprintf(
				"Agent %s was claimed for BareMetalHost %s, which (%s) is not the hardware that Agent %s reports (%s): Agent %s has the host's "+
					"identity",
				claimed.Name, r.Host.Name, describeHost(r.Host), claimed.Name, describe(claimed), others[0].Name,
			)
			verdict.Remedy = "find out which host reported the MAC address of this one before its serial number was known"
		}
		return verdict
	case len(others) > 0:
		return several(r.Host, claimed, append([]*assisted.Agent{claimed}, others...))
	case !claimed.HasInventory():
		return Verdict{Agent: claimed}
	}
	if twin := serialTwin(r); twin != "" && claimed.Spec.ClusterDeploymentName == nil {
		return sameSerial(r, twin)
	}
	if names := HostsMatching(claimed, r.Hosts); len(names) > 1 {
		return Verdict{
			Agent: claimed,
			Note: fmt.Sprintf(
				"Agent %s is claimed for BareMetalHost %s and matches BareMetalHosts %s: replace the one whose spec.bootMACAddress is wrong",
				claimed.Name, r.Host.Name, strings.Join(names, ", "),
			),
		}
	}
	return Verdict{Agent: claimed}
}

// rivals names the Agents that match a host beside that of its installed system; "" when there are none.
func rivals(host *bmov1alpha1.BareMetalHost, others []*assisted.Agent) string {
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"Agent %s matches BareMetalHost %s too, which is installed already, so it is not approved: %s", describeAll(others), host.Name,
		severalRemedy(host),
	)
}

// single checks the only Agent that matches the host: it must match no other host and be claimed for no other Machine that exists.
func single(r Request, agent *assisted.Agent) Verdict {
	if names := HostsMatching(agent, r.Hosts); len(names) > 1 {
		return Verdict{Reason: bootstrapv1.SeveralHostsReason, Message: fmt.Sprintf(
			"Agent %s (%s) matches BareMetalHosts %s, so it is not approved: replace the one whose spec.bootMACAddress is wrong, or correct its "+
				"annotation %s",
			agent.Name, describe(agent), strings.Join(names, ", "), bootstrapv1.VouchedAgentAnnotation)}
	}
	if claim := agent.Annotations[bootstrapv1.ClaimAnnotation]; slices.Contains(r.LivingClaims, claim) {
		other, _, _ := agent.ClaimedFor()
		return Verdict{Reason: bootstrapv1.AgentClaimedByOtherReason, Message: fmt.Sprintf(
			"Agent %s (%s) matches BareMetalHost %s and is claimed for Machine %s: two hosts register with one identity; correct the serial "+
				"number or system UUID in the firmware of one of them",
			agent.Name,
			describe(agent),
			r.Host.Name,
			other,
		)}
	}
	if twin := serialTwin(r); twin != "" {
		return sameSerial(r, twin)
	}
	return Verdict{Agent: agent}
}

// sameSerial says that two hosts may register as one Agent, and what lets the Machine's host in.
func sameSerial(r Request, twin string) Verdict {
	return Verdict{Reason: bootstrapv1.DuplicateSerialNumberReason, Message: fmt.Sprintf(
		"BareMetalHosts %s and %s both have serial number %q, and each has to register as an Agent of its own before it is let in: if they "+
			"share one Agent, "+
			"correct the serial number in the firmware of one of them; if BareMetalHost %s does not register, vouch for the Agent of "+
			"BareMetalHost %s with annotation %s",
		r.Host.Name,
		twin,
		r.Host.Status.HardwareDetails.SystemVendor.SerialNumber,
		twin,
		r.Host.Name,
		bootstrapv1.VouchedAgentAnnotation,
	)}
}

// unmatched says why no Agent was recognised. A boot MAC address that is set cannot be changed (METAL3 M3-68).
func unmatched(r Request) Verdict {
	if !metal3.Provisioned(r.Host) {
		return Verdict{Reason: bootstrapv1.WaitingForHostReason, Message: fmt.Sprintf(
			"BareMetalHost %s %s: waiting for it to be booted", r.Host.Name, metal3.StateText(r.Host))}
	}
	if twin := namesake(r); twin != "" {
		return sameSerial(r, twin)
	}
	var strangers []*assisted.Agent
	for i := range r.Agents {
		agent := &r.Agents[i]
		if agent.HasInventory() && agent.Annotations[bootstrapv1.ClaimAnnotation] == "" && len(HostsMatching(agent, r.Hosts)) == 0 &&
			!hasSerialOfOther(agent, r) && !isOther(agent, r) {
			strangers = append(strangers, agent)
		}
	}
	if len(strangers) == 0 {
		return Verdict{Reason: bootstrapv1.WaitingForAgentReason, Message: fmt.Sprintf(
			"BareMetalHost %s was booted and its Agent has not registered: if that takes more than 30 minutes, look at the host's console",
			r.Host.Name,
		)}
	}
	return Verdict{Reason: bootstrapv1.AgentNotRecognizedReason, Message: fmt.Sprintf(
		"BareMetalHost %s (%s) was booted and no Agent has its identity; Agent %s matches no BareMetalHost: if it is this host, replace "+
			"the BareMetalHost by one with the right spec.bootMACAddress, or vouch for the Agent with annotation %s",
		r.Host.Name,
		describeHost(r.Host),
		describeAll(strangers),
		bootstrapv1.VouchedAgentAnnotation,
	)}
}
