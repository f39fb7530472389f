// SPDX-License-Identifier: Apache-2.0

package assisted

import "slices"

// The states of a host, as in Agent.status.debugInfo.state (ASSISTED 1.2).
const (
	hostDiscovering          = "discovering"
	hostDiscoveringUnbound   = "discovering-unbound"
	hostInsufficient         = "insufficient"
	hostInsufficientUnbound  = "insufficient-unbound"
	hostKnown                = "known"
	hostKnownUnbound         = "known-unbound"
	hostDisconnected         = "disconnected"
	hostDisconnectedUnbound  = "disconnected-unbound"
	hostBinding              = "binding"
	hostUnbinding            = "unbinding"
	hostUnbindingPending     = "unbinding-pending-user-action"
	hostReclaiming           = "reclaiming"
	hostReclaimingRebooting  = "reclaiming-rebooting"
	hostPreparing            = "preparing-for-installation"
	hostPreparingFailed      = "preparing-failed"
	hostPreparingSuccessful  = "preparing-successful"
	hostInstalling           = "installing"
	hostInstallingInProgress = "installing-in-progress"
	hostInstallingPending    = "installing-pending-user-action"
	hostInstalled            = "installed"
	hostAdded                = "added-to-existing-cluster"
	hostError                = "error"
	hostCancelled            = "cancelled"
)

// The states of a cluster, as in AgentClusterInstall.status.debugInfo.state (ASSISTED 1.3). "installed" lasts less than
// anyone can see (ASSISTED fact 6) and is left out.
const (
	clusterInsufficient      = "insufficient"
	clusterPendingInput      = "pending-for-input"
	clusterReady             = "ready"
	clusterPreparing         = "preparing-for-installation"
	clusterInstalling        = "installing"
	clusterInstallingPending = "installing-pending-user-action"
	clusterFinalizing        = "finalizing"
	clusterAddingHosts       = "adding-hosts"
	clusterError             = "error"
	clusterCancelled         = "cancelled"
)

const (
	kindHost     = "Host"
	kindAddition = "AddToExistingClusterHost"

	roleMaster  = "master"
	roleArbiter = "arbiter"
	roleWorker  = "worker"
	roleAuto    = "auto-assign"
)

// stateInfos are the sentences that go with a host's state, where they are fixed.
var stateInfos = map[string]string{
	hostDiscovering:         "Waiting for host to send hardware details",
	hostDiscoveringUnbound:  "Waiting for host to send hardware details",
	hostKnown:               "Host is ready to be installed",
	hostKnownUnbound:        "Host is ready to be bound to a cluster",
	hostDisconnected:        "Host has stopped communicating with the installation service",
	hostDisconnectedUnbound: "Host has stopped communicating with the installation service",
	hostBinding:             "Host is waiting to be bound to the cluster",
	hostUnbinding:           "Host is waiting to be unbound from the cluster",
	hostUnbindingPending:    "Host is waiting to be unbound from the cluster",
	hostReclaiming:          "Host is waiting to be unbound from the cluster",
	hostReclaimingRebooting: "Host is rebooting into the discovery image",
	hostPreparing:           "Host finished successfully to prepare for installation",
	hostPreparingSuccessful: "Host finished successfully to prepare for installation",
	hostPreparingFailed: "Host failed to prepare for installation due to following failing validation(s): Failed to fetch container " +
		"images needed for installation",
	hostInstalling: "Installation is in progress",
	hostInstalled:  "Done",
	hostAdded:      "Done",
	hostCancelled:  "Installation was cancelled by user",
}

var clusterInfos = map[string]string{
	clusterInsufficient:      "Cluster is not ready for install",
	clusterPendingInput:      "User input required",
	clusterReady:             "Cluster ready to be installed",
	clusterPreparing:         "Preparing cluster for installation",
	clusterInstalling:        "Installation in progress",
	clusterInstallingPending: "Cluster has hosts pending user action",
	clusterFinalizing:        "Finalizing cluster installation",
	clusterAddingHosts:       "Cluster is installed",
	clusterError:             "cluster has hosts in error",
	clusterCancelled:         "Cancelled cluster installation",
}

// acceptingStates are those in which a cluster takes hosts (ASSISTED fact 1).
var acceptingStates = []string{clusterInsufficient, clusterReady, clusterPendingInput, clusterAddingHosts}

// updatableStates are those in which a host takes changes of role, hostname, labels and disk (ASSISTED 1.2).
var updatableStates = []string{
	hostDiscovering, hostInsufficient, hostKnown, hostDisconnected, hostBinding,
	hostDiscoveringUnbound, hostInsufficientUnbound, hostKnownUnbound, hostDisconnectedUnbound,
}

// preInstallStates are those of a bound host that has not begun to install.
var preInstallStates = []string{hostDiscovering, hostInsufficient, hostKnown, hostDisconnected, hostBinding}

// installingStates are those of a host between the start of the installation and its end.
var installingStates = []string{
	hostPreparing, hostPreparingFailed, hostPreparingSuccessful, hostInstalling, hostInstallingInProgress, hostInstallingPending,
}

// leavingStates are those of a host that has been taken out of its cluster, until it registers again.
var leavingStates = []string{hostUnbinding, hostUnbindingPending, hostReclaiming, hostReclaimingRebooting, hostCancelled}

// beforeInstall says whether a cluster with this state has not begun to install.
func beforeInstall(state string) bool {
	return state == clusterInsufficient || state == clusterPendingInput || state == clusterReady
}

func isOneOf(state string, states []string) bool { return slices.Contains(states, state) }
