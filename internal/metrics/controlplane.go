// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"regexp"
)

// Topologies of a control plane.
const (
	// TopologySingleNode: one host.
	TopologySingleNode = "single_node"
	// TopologyArbiter: two hosts and an arbiter (spec.install.twoNode: Arbiter).
	TopologyArbiter = "two_node_arbiter"
	// TopologyFencing: two hosts that power each other off (spec.install.twoNode: Fencing).
	TopologyFencing = "two_node_fencing"
	// TopologyHighlyAvailable: three hosts or more.
	TopologyHighlyAvailable = "highly_available"
)

// Topologies are all topologies.
var Topologies = []string{TopologySingleNode, TopologyArbiter, TopologyFencing, TopologyHighlyAvailable}

// Results of an attempt to install a cluster.
const (
	// InstallCompleted: the cluster is installed and recorded.
	InstallCompleted = "completed"
	// InstallFailed: assisted-service says that the installation failed or was cancelled.
	InstallFailed = "failed"
	// InstallRetried: another attempt has begun.
	InstallRetried = "retried"
)

// Reasons of a result that is not completed.
const (
	// InstallReasonHost, of failed: a host failed by itself.
	InstallReasonHost = "host"
	// InstallReasonCluster, of failed: no host failed, but the cluster did.
	InstallReasonCluster = "cluster"
	// InstallReasonCancelled, of failed: somebody cancelled the installation.
	InstallReasonCancelled = "cancelled"
	// InstallReasonAsked, of retried: the user asked for the attempt.
	InstallReasonAsked = "asked"
	// InstallReasonAutomatic, of retried: spec.install.retries allows the attempt.
	InstallReasonAutomatic = "automatic"
	// InstallReasonLost, of retried: the ClusterDeployment or the AgentClusterInstall vanished.
	InstallReasonLost = "lost"
)

// Results of an upgrade.
const (
	// UpgradeCompleted: the cluster runs another release than before, completely.
	UpgradeCompleted = "completed"
	// UpgradeFailed: the upgrade does not succeed, was interrupted, or the cluster or its API server does not accept the release.
	UpgradeFailed = "failed"
)

// Causes of the replacement of a control-plane Machine.
const (
	// CauseUnhealthy: a MachineHealthCheck found the Machine unhealthy.
	CauseUnhealthy = "unhealthy"
	// CauseOutdated: the Machine was not what the control plane asks for.
	CauseOutdated = "outdated"
)

// Results of the replacement of a control-plane Machine.
const (
	// ReplacementStarted: it is recorded that the Machine is replaced, or an outdated Machine was deleted.
	ReplacementStarted = "started"
	// ReplacementCompleted: the Machine that takes the place of an unhealthy one has a Node, or an outdated Machine is gone.
	ReplacementCompleted = "completed"
	// ReplacementFailed: the Machine that took the place of an unhealthy one is unhealthy too, and is replaced itself.
	ReplacementFailed = "failed"
)

// States of a member of etcd.
const (
	// MemberHealthy: the member serves.
	MemberHealthy = "healthy"
	// MemberUnhealthy: the member does not serve.
	MemberUnhealthy = "unhealthy"
	// MemberLost: the member does not serve, and the cluster has more members than Machines that can have one.
	MemberLost = "lost"
)

// MemberStates are all states of a member of etcd.
var MemberStates = []string{MemberHealthy, MemberUnhealthy, MemberLost}

// Results of asking a registry what a release image is.
const (
	// ResolveResolved: the digest and the version are known.
	ResolveResolved = "resolved"
	// ResolveFailed: the registry could not be asked, or the image is no release.
	ResolveFailed = "failed"
)

// OtherRelease is the value of the label release_minor for what is no version of OpenShift 4 or 5.
const OtherRelease = "other"

var minor = regexp.MustCompile(`^([45]\.[0-9]{1,2})\.`)

// ReleaseMinor is the value of the label release_minor for a version of OpenShift.
func ReleaseMinor(version string) string {
	if match := minor.FindStringSubmatch(version); match != nil {
		return match[1]
	}
	return OtherRelease
}

var (
	topologyLabel = Label{Name: "topology", Constants: "Topology", Values: Topologies}
	minorLabel    = Label{
		Name:    "release_minor",
		Pattern: "major and minor version of OpenShift, such as `4.20`; `other` when it is none of OpenShift 4 and 5, so there are 201 at most",
	}
)

// The metrics of the control plane manager.
var (
	InstallsTotal = Definition{
		Name: "openshift_assisted_installs_total", Kind: Counter, Help: "Attempts to install a cluster that have ended, and those begun again.",
		Labels: []Label{
			topologyLabel, minorLabel,
			{Name: "result", Constants: "Install", Values: []string{InstallCompleted, InstallFailed, InstallRetried}},
			{Name: "reason", Constants: "InstallReason", Values: []string{
				"", InstallReasonHost, InstallReasonCluster, InstallReasonCancelled, InstallReasonAsked, InstallReasonAutomatic, InstallReasonLost,
			}},
		},
		Source: "completed: annotation controlplane.cluster.x-k8s.io/installed-cluster; failed: status.install.phase, as the condition " +
			"Installed with InstallationFailed, RetryWaiting or RetriesExhausted; retried: annotation controlplane.cluster.x-k8s.io/install-attempt",
		Counts: "when a pass has written the record, the phase Failed or the next number; a cluster that was moved here is not counted",
	}
	InstallSeconds = Definition{
		Name: "openshift_assisted_install_seconds", Kind: Histogram,
		Help:   "Seconds from the creation of the AgentClusterInstall of an attempt until its cluster was installed.",
		Labels: []Label{topologyLabel}, Buckets: []float64{600, 900, 1200, 1800, 2400, 3000, 3600, 4500, 5400, 7200, 9000, 10800},
		Source: "creation of the AgentClusterInstall, and the time of its condition Completed; waiting for hosts, or for a hold, is part of it",
		Counts: "with installs_total{result=\"completed\"}",
	}
	UpgradesTotal = Definition{
		Name: "openshift_assisted_upgrades_total", Kind: Counter, Help: "Upgrades of installed clusters that are complete, and that fail.",
		Labels: []Label{minorLabel, {Name: "result", Constants: "Upgrade", Values: []string{UpgradeCompleted, UpgradeFailed}}},
		Source: "completed: status.distributionVersion; failed: condition Upgrading with Failing, Interrupted, ReleaseNotAccepted or " +
			"RequestRefused",
		Counts: "when a pass has written the release, or one of the reasons after none of them: an upgrade that fails, goes on and fails " +
			"again is counted twice as failed. The minor version is that of the release that the cluster is brought to",
	}
	UpgradeSeconds = Definition{
		Name: "openshift_assisted_upgrade_seconds", Kind: Histogram, Help: "Seconds from the begin of an upgrade until it was complete.",
		Buckets: []float64{600, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600},
		Source:  "history in the ClusterVersion of the installed cluster",
		Counts:  "with upgrades_total{result=\"completed\"}",
	}
	UpgradesStalled = Definition{
		Name: "openshift_assisted_upgrades_stalled", Kind: Gauge, Help: "Clusters whose upgrade does not come forward.",
		Source: "condition Upgrading with reason Stalled or Failing",
		Counts: "from the cache, at every scrape",
	}
	ReplacementsTotal = Definition{
		Name: "openshift_assisted_replacements_total", Kind: Counter, Help: "Replacements of control-plane Machines.",
		Labels: []Label{
			{Name: "cause", Constants: "Cause", Values: []string{CauseUnhealthy, CauseOutdated}},
			{Name: "result", Constants: "Replacement", Values: []string{ReplacementStarted, ReplacementCompleted, ReplacementFailed}},
		},
		Source: "unhealthy: annotations controlplane.cluster.x-k8s.io/remediation-in-progress and remediation-for; outdated: condition " +
			"UpToDate of the Machine",
		Counts: "started and failed when a pass has written the record, or has deleted the outdated Machine; completed when the new Machine " +
			"gets its Node, or the outdated one is gone",
	}
	EtcdMembers = Definition{
		Name: "openshift_assisted_etcd_members", Kind: Gauge, Help: "Members of etcd of all installed clusters, by state.",
		Labels: []Label{{Name: "state", Constants: "Member", Values: MemberStates}},
		Source: "status.etcd and status.replicas of every OpenshiftAssistedControlPlane",
		Counts: "from the cache, at every scrape. What was known stays while a cluster does not answer",
	}
	WorkloadUnreachable = Definition{
		Name: "openshift_assisted_workload_unreachable", Kind: Gauge, Help: "Installed clusters whose API does not answer.",
		Source: "condition Available with reason ConnectionDown",
		Counts: "from the cache, at every scrape",
	}
	WorkloadUnreachableOldestSeconds = Definition{
		Name: "openshift_assisted_workload_unreachable_oldest_seconds", Kind: Gauge,
		Help:   "Seconds since the installed cluster whose API has not answered longest was found to be silent.",
		Source: "since when the conditions Available, EtcdClusterHealthy and ControlPlaneComponentsHealthy have the reason ConnectionDown",
		Counts: "from the cache, at every scrape; 0 when all answer. The grace period of --remote-conditions-grace-period is over by then",
	}
	ReleaseResolveSeconds = Definition{
		Name: "openshift_assisted_release_resolve_seconds", Kind: Histogram,
		Help: "Seconds until it was known what a release image is, or that the registry does not tell.",
		Labels: []Label{
			{Name: "result", Constants: "Resolve", Values: []string{ResolveResolved, ResolveFailed}},
		},
		Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 900, 3600},
		Source:  "condition ReleaseResolved, from one lastTransitionTime to the next",
		Counts:  "when a pass has written that it is True, or False after Unknown; what is resolved after a failure counts from that failure on",
	}
	CredentialExpirySeconds = Definition{
		Name: "openshift_assisted_credential_expiry_seconds", Kind: Gauge,
		Help:   "Seconds until the first of the tokens ends by which installed clusters are reached; below 0 when it has ended.",
		Source: "annotation controlplane.cluster.x-k8s.io/kubeconfig-token of the Secrets <cluster>-kubeconfig",
		Counts: "from the cache, at every scrape; there is no series while there is no token. Tokens are renewed at half of their life",
	}
)
