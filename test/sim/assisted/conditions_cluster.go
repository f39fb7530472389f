// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/assisted-service/api/common"
)

const (
	condCompleted         = "Completed"
	condFailed            = "Failed"
	condStopped           = "Stopped"
	condPreparationFailed = "LastInstallationPreparationFailed"
)

// clusterView is what an AgentClusterInstall shows of its cluster.
type clusterView struct {
	id, state, info string
	openshiftID     string
	failing         []string
	// faults are those of failing that a fault makes fail, by the identifier of the check.
	faults   map[string]string
	tally    tally
	spec     clusterInput
	prepared bool
	// unprepared is why the service could not prepare the installation the last time.
	unprepared string
	progress   int64
	// hasMetadata is set from installing on, hasKubeconfig when the Secret may be there, complete at the end.
	hasMetadata, hasKubeconfig, complete bool
	nodeIPs                              []string
}

// clusterConditions is the condition table of ASSISTED 1.3, without SpecSynced.
func clusterConditions(c clusterView) []condition {
	return []condition{
		clusterRequirements(c), clusterValidated(c), clusterCompleted(c), clusterFailed(c), clusterStopped(c), preparationFailed(c),
	}
}

// unavailableConditions are those of an AgentClusterInstall that the service knows no cluster for.
func unavailableConditions() []condition {
	var out []condition
	for _, kind := range []string{condRequirementsMet, condValidated, condCompleted, condFailed, condStopped} {
		out = append(out, condition{kind, unknown, "NotAvailable", "Information not available"})
	}
	return append(out, preparationFailed(clusterView{}))
}

func clusterRequirements(c clusterView) condition {
	met := func(reason, message string) condition { return condition{condRequirementsMet, yes, reason, message} }
	switch c.state {
	case clusterReady:
		return readyRequirements(c)
	case clusterPreparing, clusterInstalling, clusterInstallingPending, clusterFinalizing, clusterAddingHosts:
		return met("ClusterAlreadyInstalling", "The cluster requirements are met")
	case clusterError:
		return met("ClusterInstallationStopped", "The cluster installation stopped")
	case clusterCancelled:
		return condition{condRequirementsMet, unknown, "UnknownStatus", "The installation status is currently not recognized: " + c.state}
	}
	return condition{condRequirementsMet, no, "ClusterNotReady", "The cluster is not ready to begin the installation"}
}

func readyRequirements(c clusterView) condition {
	unmet := func(reason, format string, args ...any) condition {
		return condition{condRequirementsMet, no, reason, fmt.Sprintf(format, args...)}
	}
	t, want := c.tally, c.spec
	expected := want.agents()
	switch {
	case t.masters != want.ControlPlaneAgents || t.arbiters != want.ArbiterAgents || t.workers != want.WorkerAgents:
		return unmet("InsufficientAgents", "The cluster currently requires exactly %d master agents, %d arbiter agents and %d worker agents, "+
			"but currently registered %d master agents, %d arbiter agents and %d worker agents",
			want.ControlPlaneAgents, want.ArbiterAgents, want.WorkerAgents, t.masters, t.arbiters, t.workers)
	case t.unsynced > 0:
		return unmet("UnsyncedAgents", "The cluster currently has %d agents with spec error", t.unsynced)
	case t.approved < expected:
		return unmet("UnapprovedAgents", "The installation is pending on the approval of %d agents", expected-t.approved)
	}
	return condition{condRequirementsMet, yes, "ClusterIsReady", "The cluster is ready to begin the installation"}
}

func clusterValidated(c clusterView) condition {
	failing := strings.Join(c.failing, ",")
	switch c.state {
	case clusterInsufficient:
		return condition{condValidated, no, "ValidationsFailing", "The cluster's validations are failing: " + failing}
	case clusterPendingInput:
		return condition{condValidated, no, "ValidationsUserPending", "The cluster's validations are pending for user: " + failing}
	}
	return condition{condValidated, yes, "ValidationsPassing", "The cluster's validations are passing"}
}

func clusterCompleted(c clusterView) condition {
	switch c.state {
	case clusterReady:
		if c.spec.Held {
			return condition{condCompleted, no, "InstallationOnHold", "The installation is on hold. To unhold set holdInstallation to false"}
		}
	case clusterPreparing, clusterInstalling, clusterInstallingPending, clusterFinalizing:
		return condition{condCompleted, no, "InstallationInProgress", "The installation is in progress: " + c.info}
	case clusterAddingHosts:
		return condition{condCompleted, yes, "InstallationCompleted", "The installation has completed: " + c.info}
	case clusterError:
		return condition{condCompleted, no, "InstallationFailed", "The installation has failed: " + c.info}
	case clusterCancelled:
		return condition{condCompleted, unknown, "UnknownStatus", "The installation status is currently not recognized: " + c.state}
	}
	return condition{condCompleted, no, "InstallationNotStarted", "The installation has not yet started"}
}

func clusterFailed(c clusterView) condition {
	if c.state == clusterError {
		return condition{condFailed, yes, "InstallationFailed", "The installation failed: " + c.info}
	}
	return condition{condFailed, no, "InstallationNotFailed", "The installation has not failed"}
}

func clusterStopped(c clusterView) condition {
	switch c.state {
	case clusterAddingHosts:
		return condition{condStopped, yes, "InstallationCompleted", "The installation has stopped because it completed successfully"}
	case clusterError:
		return condition{condStopped, yes, "InstallationFailed", "The installation has stopped due to error"}
	case clusterCancelled:
		return condition{condStopped, yes, "InstallationCancelled", "The installation has stopped because it was cancelled"}
	}
	return condition{condStopped, no, "InstallationNotStopped", "The installation is waiting to start or in progress"}
}

// preparationFailed is about what the service itself makes for the installation, and not about its hosts (ASSISTED 3.9 and 3.10).
func preparationFailed(c clusterView) condition {
	switch {
	case c.unprepared != "":
		return condition{condPreparationFailed, yes, "The last installation preparation failed", c.unprepared}
	case c.prepared:
		return condition{condPreparationFailed, no, "There is no failing prior preparation attempt", ""}
	}
	return condition{condPreparationFailed, no, "Cluster preparation has never been performed for this cluster", ""}
}

// hostChecks are the checks of a cluster's hosts: what their messages begin with when they fail, and what they say else.
var hostChecks = []struct{ id, fails, passes string }{
	{"all-hosts-are-ready-to-install", "The cluster has hosts", "All hosts in the cluster are ready to install."},
	{"sufficient-masters-count", "The cluster must have", "The cluster has the exact amount of dedicated control plane nodes."},
}

// clusterValidations are the checks of a cluster by group; nil when it was not looked at yet.
func clusterValidations(c clusterView) common.ValidationsStatus {
	if c.state == clusterInsufficient && len(c.failing) == 0 {
		return nil
	}
	info := common.ValidationsStatus{
		"configuration": {{ID: "pull-secret-set", Status: "success", Message: "The pull secret is set."}},
	}
	for _, check := range hostChecks {
		result := common.ValidationResult{ID: check.id, Status: "success", Message: check.passes}
		for _, message := range c.failing {
			if strings.HasPrefix(message, check.fails) {
				result.Status, result.Message = "failure", message
			}
		}
		info["hosts-data"] = append(info["hosts-data"], result)
	}
	for _, id := range slices.Sorted(maps.Keys(c.faults)) {
		info["network"] = append(info["network"], common.ValidationResult{ID: id, Status: "failure", Message: c.faults[id]})
	}
	return info
}
