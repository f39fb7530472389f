// SPDX-License-Identifier: Apache-2.0

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

// Matches reports whether the Agent is the host, among all hosts of the namespace: because somebody vouches for it or, where nobody does,
// by the boot MAC, or by another inspected MAC that no other host has; and the Agent has to report the host's serial number where Metal3
// knows a real one.
func Matches(agent *assisted.Agent, host *bmov1alpha1.BareMetalHost, hosts []bmov1alpha1.BareMetalHost) bool {
	if name := vouchedAgent(host); name != "" {
		return name == agent.Name
	}
	vouched := slices.ContainsFunc(hosts, func(h bmov1alpha1.BareMetalHost) bool { return vouchedAgent(&h) == agent.Name })
	return !vouched && matchesMAC(agent, host, hosts) && reportsSerial(agent, host)
}

// stillMatches reports whether a claimed Agent still has what the host is known by. Addresses that another BareMetalHost has as well count
// here: a typo in an unrelated one must not undo a claim.
func stillMatches(agent *assisted.Agent, host *bmov1alpha1.BareMetalHost) bool {
	if vouchedAgent(host) == agent.Name {
		return true
	}
	known := append(metal3.InspectedMACs(host), metal3.BootMAC(host))
	return reportsSerial(agent, host) &&
		slices.ContainsFunc(agent.MACAddresses(), func(mac string) bool { return slices.Contains(known, mac) })
}

// vouchedAgent is the name of the Agent that somebody vouches for, or "".
func vouchedAgent(host *bmov1alpha1.BareMetalHost) string {
	return host.Annotations[bootstrapv1.VouchedAgentAnnotation]
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

// reportsSerial reports whether the Agent has the serial number that Metal3 knows. One that reports none does not: who copies an address
// can leave the serial number out.
func reportsSerial(agent *assisted.Agent, host *bmov1alpha1.BareMetalHost) bool {
	known := metal3.SerialNumber(host)
	return known == "" || known == metal3.NormalizeSerial(agent.Status.Inventory.SystemVendor.SerialNumber)
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

// serialTwin returns the name of a namesake without an Agent of its own, or "". Two hosts with one system serial number still register
// as two Agents, whose names come from the serial number of the board, or the system UUID (ASSISTED fact 9): once both have, there is no
// doubt.
func serialTwin(r Request) string {
	return namesakeWith(r, func(other *bmov1alpha1.BareMetalHost) bool { return !hasAgent(r, other) })
}

// namesake returns the name of another host in use that has the real serial number of the Machine's host, or "".
func namesake(r Request) string {
	return namesakeWith(r, func(*bmov1alpha1.BareMetalHost) bool { return true })
}

func namesakeWith(r Request, wanted func(*bmov1alpha1.BareMetalHost) bool) string {
	serial := metal3.SerialNumber(r.Host)
	if serial == "" || vouchedAgent(r.Host) != "" {
		return ""
	}
	for i := range r.Hosts {
		other := &r.Hosts[i]
		boots := other.Spec.ConsumerRef != nil && other.Status.Provisioning.State != bmov1alpha1.StateExternallyProvisioned
		if other.Name != r.Host.Name && boots && metal3.SerialNumber(other) == serial && wanted(other) {
			return other.Name
		}
	}
	return ""
}

// hasAgent reports whether an Agent matches a host, whatever InfraEnv it registered through.
func hasAgent(r Request, host *bmov1alpha1.BareMetalHost) bool {
	return slices.ContainsFunc(r.AllAgents, func(a assisted.Agent) bool { return Matches(&a, host, r.Hosts) })
}

// hasSerialOfOther reports whether the Agent has the serial number of another host than the Machine's: it is that one's problem.
func hasSerialOfOther(agent *assisted.Agent, r Request) bool {
	serial := metal3.NormalizeSerial(agent.Status.Inventory.SystemVendor.SerialNumber)
	return serial != "" && serial != metal3.SerialNumber(r.Host) && slices.ContainsFunc(r.Hosts, func(h bmov1alpha1.BareMetalHost) bool {
		return metal3.SerialNumber(&h) == serial
	})
}

// isOther reports whether the Agent is other hardware than the Machine's host: it has another serial number, both are real, and no address
// that proves anything. With such an address it may be the host all the same, whose serial number was recorded wrong.
func isOther(agent *assisted.Agent, r Request) bool {
	known, reported := metal3.SerialNumber(r.Host), metal3.NormalizeSerial(agent.Status.Inventory.SystemVendor.SerialNumber)
	return known != "" && reported != "" && known != reported && !matchesMAC(agent, r.Host, r.Hosts)
}

// describe says by which addresses and serial number an Agent can be found. Few addresses are enough: a message with all of those that a
// stranger may report would be cut, and lose the remedy at its end.
func describe(agent *assisted.Agent) string {
	addresses, more := agent.MACAddresses(), ""
	if n := len(addresses) - maxListed; n > 0 {
		addresses, more = addresses[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("MAC %s%s, serial number %q", strings.Join(addresses, " "), more, agent.Status.Inventory.SystemVendor.SerialNumber)
}

// describeAll names Agents and what they report.
func describeAll(agents []*assisted.Agent) string {
	texts := make([]string, 0, len(agents))
	for _, agent := range agents {
		texts = append(texts, fmt.Sprintf("%s (%s)", agent.Name, describe(agent)))
	}
	switch {
	case len(texts) <= maxListed:
		return strings.Join(texts, ", ")
	case len(texts) >= MaxStrangers:
		return strings.Join(texts[:maxListed], ", ") + " and many more"
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxListed], ", "), len(texts)-maxListed)
}

func describeHost(host *bmov1alpha1.BareMetalHost) string {
	serial := ""
	if host.Status.HardwareDetails != nil {
		serial = host.Status.HardwareDetails.SystemVendor.SerialNumber
	}
	return fmt.Sprintf("boot MAC %s, serial number %q", metal3.BootMAC(host), serial)
}
