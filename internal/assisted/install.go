// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"sort"
	"strconv"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
)

// Phase is where an installation is, told by the AgentClusterInstall's conditions and, where none exists, by its state (DESIGN D8).
type Phase string

const (
	// PhaseUnknown: assisted-service has said nothing yet, or does not know.
	PhaseUnknown Phase = ""
	// PhaseWaiting: the installation has not begun; hosts may be bound and requirements changed.
	PhaseWaiting Phase = "Waiting"
	// PhasePreparing: the installation has begun and nothing was written to a disk yet.
	PhasePreparing Phase = "Preparing"
	// PhaseInstalling: hosts are being installed.
	PhaseInstalling Phase = "Installing"
	// PhaseFinalizing: the cluster's operators are being installed.
	PhaseFinalizing Phase = "Finalizing"
	// PhaseCompleted: the cluster is installed and takes day-2 hosts.
	PhaseCompleted Phase = "Completed"
	// PhaseFailed: the installation failed or was cancelled; terminal for this AgentClusterInstall (ASSISTED 3.11).
	PhaseFailed Phase = "Failed"
)

// stateInfoHostsFailed is how the service describes a cluster that failed because of its hosts.
const stateInfoHostsFailed = "cluster has hosts in error"

// percentageHostsInstalled is how far an installation is when all its hosts are installed: assisted-service counts 10 for their
// preparation, 70 for their installation, and the rest for the operators of the cluster (ASSISTED 1.3).
const percentageHostsInstalled = 80

// ClusterCondition returns the AgentClusterInstall's condition of a type, or nil.
func ClusterCondition(aci *hiveext.AgentClusterInstall, conditionType hivev1.ClusterInstallConditionType) *hivev1.ClusterInstallCondition {
	for i := range aci.Status.Conditions {
		if aci.Status.Conditions[i].Type == conditionType {
			return &aci.Status.Conditions[i]
		}
	}
	return nil
}

func conditionTrue(aci *hiveext.AgentClusterInstall, conditionType hivev1.ClusterInstallConditionType) bool {
	c := ClusterCondition(aci, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PhaseOf tells where the installation is. The state "installed" is never seen (ASSISTED fact 6), so completion is told by its condition.
func PhaseOf(aci *hiveext.AgentClusterInstall) Phase {
	completed := ClusterCondition(aci, hiveext.ClusterCompletedCondition)
	switch {
	case conditionTrue(aci, hiveext.ClusterFailedCondition):
		return PhaseFailed
	case conditionTrue(aci, hiveext.ClusterCompletedCondition):
		return PhaseCompleted
	case conditionTrue(aci, hiveext.ClusterStoppedCondition):
		return PhaseFailed
	case completed == nil:
		return PhaseUnknown
	case completed.Reason == hiveext.ClusterInstallationNotStartedReason, completed.Reason == hiveext.ClusterInstallationOnHoldReason:
		return PhaseWaiting
	case completed.Reason != hiveext.ClusterInstallationInProgressReason:
		return PhaseUnknown
	}
	switch aci.Status.DebugInfo.State {
	case ClusterStatePreparing:
		return PhasePreparing
	case ClusterStateFinalizing:
		return PhaseFinalizing
	default:
		return PhaseInstalling
	}
}

// FailedByHosts reports whether the installation failed because a host did, and not by something of the cluster as a whole
// (ASSISTED 3.11).
func FailedByHosts(aci *hiveext.AgentClusterInstall) bool {
	return conditionTrue(aci, hiveext.ClusterFailedCondition) && strings.Contains(aci.Status.DebugInfo.StateInfo, stateInfoHostsFailed)
}

// HostsInstalled reports whether all hosts of the installation were installed, whatever came of it since: assisted-service leaves the
// percentage of an installation that fails. A cluster with workers may be finalized before, so that false tells nothing.
func HostsInstalled(aci *hiveext.AgentClusterInstall) bool {
	return aci.Status.Progress.TotalPercentage >= percentageHostsInstalled
}

// AcceptsHosts reports whether a bind is accepted now. The four states flap among each other and are only ever used as this set
// (ASSISTED facts 1 and 5).
func AcceptsHosts(aci *hiveext.AgentClusterInstall) bool {
	switch aci.Status.DebugInfo.State {
	case ClusterStateInsufficient, ClusterStateReady, ClusterStatePending, ClusterStateAddingHosts:
		return true
	default:
		return false
	}
}

// DayOneAgents returns the names of the Agents of the first installation, and whether day 1 is closed.
func DayOneAgents(aci *hiveext.AgentClusterInstall) (names []string, closed bool) {
	value, closed := aci.Annotations[DayOneAgentsAnnotation]
	if value == "" {
		return nil, closed
	}
	return strings.Split(value, ","), closed
}

// FormatDayOneAgents is the value of DayOneAgentsAnnotation for the names, in any order.
func FormatDayOneAgents(names []string) string {
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	return strings.Join(sorted, ",")
}

// HostRegistrationTimeout is how long a host of the cluster may take to register once it was booted; 0 is without limit.
func HostRegistrationTimeout(aci *hiveext.AgentClusterInstall) time.Duration {
	value, ok := aci.Annotations[HostRegistrationTimeoutAnnotation]
	if seconds, err := strconv.ParseInt(value, 10, 32); ok && err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	return DefaultHostRegistrationTimeout // Also when somebody broke it.
}

// Gate says whether a recognised host may be bound now.
type Gate string

const (
	// GateDayOne: the host may be bound for the first installation.
	GateDayOne Gate = "DayOne"
	// GateDayTwo: the host may be bound to the installed cluster and is installed at once.
	GateDayTwo Gate = "DayTwo"
	// GateClosed: the host waits, registered and unbound, which harms nobody (ASSISTED 8.3).
	GateClosed Gate = "Closed"
)

// TakesArbiter reports whether the cluster is one of two control-plane hosts and an arbiter.
func TakesArbiter(aci *hiveext.AgentClusterInstall) bool {
	return aci != nil && aci.Annotations[TwoNodeAnnotation] == TwoNodeArbiter
}

// NeedsFencing reports whether the control-plane hosts of the cluster power each other off.
func NeedsFencing(aci *hiveext.AgentClusterInstall) bool {
	return aci != nil && aci.Annotations[TwoNodeAnnotation] == TwoNodeFencing
}

// GateOf decides whether a host of a role may be bound now (DESIGN D8, ASSISTED 8.8 rule 1). Workers are no part of the first installation
// while it requires none: a single-node cluster refuses them, and a surplus host blocks it. An arbiter is part of the first installation
// only.
func GateOf(aci *hiveext.AgentClusterInstall, role string) Gate {
	if aci == nil || !aci.DeletionTimestamp.IsZero() || !AcceptsHosts(aci) {
		return GateClosed
	}
	switch PhaseOf(aci) {
	case PhaseCompleted:
		if role == RoleArbiter {
			return GateClosed
		}
		return GateDayTwo
	case PhaseWaiting:
		if role == RoleArbiter && !TakesArbiter(aci) {
			return GateClosed
		}
		if _, closed := DayOneAgents(aci); closed {
			return GateClosed
		}
		if role == RoleWorker && aci.Spec.ProvisionRequirements.WorkerAgents == 0 {
			return GateClosed
		}
		return GateDayOne
	default:
		return GateClosed
	}
}
