// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of the events that the bootstrap manager records.
const (
	// EventInfraEnvCreated: an InfraEnv was made for the config.
	EventInfraEnvCreated = "InfraEnvCreated"

	// EventOSImageOfOtherRelease: assisted-service has no OS image of the release that the cluster runs; the note says which one the host
	// boots to be discovered. Its first boot from its disk brings it to the cluster's own.
	EventOSImageOfOtherRelease = "OSImageOfOtherRelease"

	// EventNMStateConfigWritten: an NMStateConfig was made, or changed, from a BareMetalHost's network data.
	EventNMStateConfigWritten = "NMStateConfigWritten"

	// EventNMStateConfigDeleted: an NMStateConfig was deleted, because its BareMetalHost has gone or has no network data any more.
	EventNMStateConfigDeleted = "NMStateConfigDeleted"

	// EventBootMediaPublished: the live ISO's URL was written to the infrastructure machine, in place of the image that its template names.
	EventBootMediaPublished = "BootMediaPublished"

	// EventDataSecretCreated: the bootstrap data Secret of a host that boots a disk image was created, with the discovery ignition.
	EventDataSecretCreated = "DataSecretCreated"

	// EventAgentClaimed: an Agent was recognised and claimed for the Machine, and is bound later. An Agent that is claimed and bound in one
	// step has EventAgentBound alone.
	EventAgentClaimed = "AgentClaimed"

	// EventAgentBound: the Agent was given its role, hostname, labels and cluster, and, unless a disk was chosen for it, was approved.
	EventAgentBound = "AgentBound"

	// EventInstallationDiskSet: the Agent was given the disk that its root device hints chose, and was approved.
	EventInstallationDiskSet = "InstallationDiskSet"

	// EventApprovalWithdrawn: an Agent that was approved, or bound to the cluster, is unbound and not approved any more, because it is not
	// certain that it is the Machine's host.
	EventApprovalWithdrawn = "ApprovalWithdrawn"

	// EventHostDisputed: another Agent, or another BareMetalHost, has the identity of a host whose Agent was claimed; the note names both.
	EventHostDisputed = "HostDisputed"

	// EventAgentNotRecognized: an Agent registered that matches no host.
	EventAgentNotRecognized = "AgentNotRecognized"

	// EventAgentDeleted: an Agent was deleted, because its Machine goes or has gone.
	EventAgentDeleted = "AgentDeleted"

	// EventHostRebooted: the host was power-cycled, because its Agent was lost before it was installed, or because it had not registered in
	// time.
	EventHostRebooted = "HostRebooted"

	// EventHostNeverRegistered: the host was power-cycled once and has not registered in time again.
	EventHostNeverRegistered = "HostNeverRegistered"

	// EventHostError: the BareMetalHost began to report an error.
	EventHostError = "HostError"
)
