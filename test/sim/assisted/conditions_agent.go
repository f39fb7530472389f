// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// condition is one line of the condition tables of ASSISTED 1.2 and 1.3.
type condition struct {
	kind    string
	status  corev1.ConditionStatus
	reason  string
	message string
}

const (
	condSpecSynced      = "SpecSynced"
	condConnected       = "Connected"
	condValidated       = "Validated"
	condRequirementsMet = "RequirementsMet"
	condInstalled       = "Installed"
	condBound           = "Bound"
	condCleanup         = "Cleanup"
)

const (
	yes     = corev1.ConditionTrue
	no      = corev1.ConditionFalse
	unknown = corev1.ConditionUnknown
)

// hostView is what an Agent shows of its host.
type hostView struct {
	// of is the registration that this is a view of, to compare with.
	of                *host
	id, state, info   string
	kind, role, stage string
	clusterID         string
	bootstrap         bool
	infraEnv          types.NamespacedName
	cluster           types.NamespacedName
	install           types.NamespacedName
	// approved is what the Agent says, which the service shows even where it has not taken it over.
	approved     bool
	created      bool
	validated    bool
	failing      []string
	stages       []string
	percent      int64
	inventory    *HostHardware
	disk         string
	diskGone     bool
	deprovision  *deprovision
	approvedCSRs time.Time
	// frozenProgress keeps Installed and the progress as they were: after a day-2 host's reboot the service asks the
	// cluster for its Node first, and gives up there when that does not answer (traces day2-worker, late-4).
	frozenProgress bool
}

// agentConditions is the condition table of ASSISTED 1.2, without SpecSynced and Cleanup.
func agentConditions(h hostView) []condition {
	return []condition{connected(h), validated(h), requirementsMet(h), installed(h), bound(h)}
}

func connected(h hostView) condition {
	if h.state == hostDisconnected || h.state == hostDisconnectedUnbound {
		return condition{condConnected, no, "AgentIsDisconnected",
			"The agent has not contacted the installation service in some time, user action should be taken"}
	}
	return condition{condConnected, yes, "AgentIsConnected", "The agent's connection to the installation service is unimpaired"}
}

// transition returns the reason and message that Validated, RequirementsMet, Installed and Bound share while a host
// changes its cluster.
func transition(h hostView) (reason, message string, ok bool) {
	switch h.state {
	case hostBinding:
		return "Binding", "The agent is currently binding to a cluster deployment", true
	case hostUnbinding, hostUnbindingPending:
		return "Unbinding", "The agent is currently unbinding from a cluster deployment", true
	}
	return "", "", false
}

func validated(h hostView) condition {
	if reason, message, ok := transition(h); ok {
		return condition{condValidated, no, reason, message}
	}
	const text = "The agent's validations are "
	switch h.state {
	case hostInsufficient, hostInsufficientUnbound:
		return condition{condValidated, no, "ValidationsFailing", text + "failing: " + strings.Join(h.failing, ",")}
	case hostDiscovering, hostDiscoveringUnbound:
		if !h.validated {
			return condition{condValidated, unknown, "ValidationsUnknown", "The agent's validations have not yet been calculated"}
		}
	}
	return condition{condValidated, yes, "ValidationsPassing", text + "passing"}
}

func requirementsMet(h hostView) condition {
	if reason, message, ok := transition(h); ok {
		return condition{condRequirementsMet, no, reason, message}
	}
	switch h.state {
	case hostKnown, hostKnownUnbound:
		if h.approved {
			return condition{condRequirementsMet, yes, "AgentIsReady", "The agent is ready to begin the installation"}
		}
		return condition{condRequirementsMet, no, "AgentIsNotApproved", "The agent is not approved"}
	case hostPreparing, hostPreparingSuccessful, hostInstalling, hostInstallingInProgress, hostInstallingPending:
		return condition{condRequirementsMet, yes, "AgentAlreadyInstalling", "Installation already started and is in progress"}
	case hostInstalled, hostAdded, hostError:
		return condition{condRequirementsMet, yes, "AgentInstallationStopped", "The agent installation stopped"}
	case hostPreparingFailed, hostCancelled, hostReclaiming, hostReclaimingRebooting:
		return condition{condRequirementsMet, unknown, "UnknownStatus", unknownStatus(h)}
	}
	return condition{condRequirementsMet, no, "AgentNotReady", "The agent is not ready to begin the installation"}
}

func unknownStatus(h hostView) string {
	return "The installation status is currently not recognized: " + h.state
}

func installed(h hostView) condition {
	if reason, message, ok := transition(h); ok {
		return condition{condInstalled, no, reason, message}
	}
	switch h.state {
	case hostPreparing, hostPreparingSuccessful, hostInstalling, hostInstallingInProgress, hostInstallingPending:
		return condition{condInstalled, no, "InstallationInProgress", "The installation is in progress: " + h.info}
	case hostInstalled, hostAdded:
		return condition{condInstalled, yes, "InstallationCompleted", "The installation has completed: " + h.info}
	case hostError:
		return condition{condInstalled, no, "InstallationFailed", "The installation has failed: " + h.info}
	case hostPreparingFailed, hostCancelled, hostReclaiming, hostReclaimingRebooting:
		return condition{condInstalled, unknown, "UnknownStatus", unknownStatus(h)}
	}
	return condition{condInstalled, no, "InstallationNotStarted", "The installation has not yet started"}
}

func bound(h hostView) condition {
	switch {
	case h.state == hostBinding:
		return condition{condBound, no, "Binding", "The agent is currently binding to a cluster deployment"}
	case h.state == hostUnbinding:
		return condition{condBound, no, "Unbinding", "The agent is currently unbinding from a cluster deployment"}
	case h.state == hostUnbindingPending:
		return condition{condBound, no, "UnbindingPendingUserAction",
			"The agent is currently unbinding; Pending host reboot from infraenv image"}
	case strings.HasSuffix(h.state, "-unbound"):
		return condition{condBound, no, "Unbound", "The agent is not bound to any cluster deployment"}
	}
	return condition{condBound, yes, "Bound", "The agent is bound to a cluster deployment"}
}

// agentSynced is the condition SpecSynced of an Agent.
func agentSynced(err error) condition {
	return synced(err, "The Spec has been successfully applied")
}

// synced tells errors of the user from those of the service.
func synced(err error, okMessage string) condition {
	switch {
	case err == nil:
		return condition{condSpecSynced, yes, "SyncOK", okMessage}
	case isUserError(err):
		return condition{condSpecSynced, no, "InputError", "The Spec could not be synced due to an input error: " + err.Error()}
	}
	return condition{condSpecSynced, no, "BackendError", "The Spec could not be synced due to backend error: " + err.Error()}
}
