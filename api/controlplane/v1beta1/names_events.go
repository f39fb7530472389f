// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of the events that the control plane manager records.
const (
	// EventMachineCreated: a control-plane Machine was created, or several were at once.
	EventMachineCreated = "MachineCreated"

	// EventMachineAdopted: the control plane took over a control-plane Machine of its Cluster that nobody controlled.
	EventMachineAdopted = "MachineAdopted"

	// EventInstallChanged: the AgentClusterInstall was changed because the control plane was, before the installation began.
	EventInstallChanged = "InstallChanged"

	// EventDayOneClosed: the set of hosts of the first installation was fixed, and hosts that take no part are unbound before it begins.
	EventDayOneClosed = "DayOneClosed"

	// EventInstallationStarted: the hold was cleared; the message names the hosts that take part.
	EventInstallationStarted = "InstallationStarted"

	// EventHostUnbound: a host that was not ready was left out of the first installation.
	EventHostUnbound = "HostUnbound"

	// EventInstallationFailed: the installation failed; the note says when the next attempt begins, if one does by itself.
	EventInstallationFailed = "InstallationFailed"

	// EventMachineDeleted: a surplus control-plane Machine, or one of an earlier attempt, was deleted.
	EventMachineDeleted = "MachineDeleted"

	// EventEtcdMemberRemoved: the member of a control-plane Machine that is being deleted was removed from etcd (DESIGN D24).
	EventEtcdMemberRemoved = "EtcdMemberRemoved"

	// EventEtcdStrayRemoved: a member that does not serve, and that belongs to no control-plane Machine and no Node, was removed from etcd.
	EventEtcdStrayRemoved = "EtcdStrayRemoved"

	// EventDayOneReopened: a control-plane host of the first installation was lost before it began, and hosts are waited for again.
	EventDayOneReopened = "DayOneReopened"

	// EventRetryStarted: the next attempt of the installation began, because the user set the annotation for it, because spec.install.retries
	// allows it, or because objects of the one before vanished.
	EventRetryStarted = "InstallationRetryStarted"

	// EventInstallObjectsLost: the ClusterDeployment or the AgentClusterInstall vanished after the installation had begun, and the next
	// attempt began.
	EventInstallObjectsLost = "InstallObjectsLost"

	// EventUpgradeRequested: the version operator of the cluster was asked for another release.
	EventUpgradeRequested = "UpgradeRequested"

	// EventUpgradeAcknowledged: changes of the next release were acknowledged in the cluster, as spec.upgrade.acknowledgements says.
	EventUpgradeAcknowledged = "UpgradeAcknowledged"

	// EventUpgradeChannelSet: the version operator of the cluster looks for updates in spec.upgrade.channel now.
	EventUpgradeChannelSet = "UpgradeChannelSet"

	// EventUpgraded: the cluster runs another release now.
	EventUpgraded = "Upgraded"

	// EventKubeconfigTokenIssued: a token of the installed cluster was written to the Secret <cluster>-kubeconfig, but for the first one,
	// which comes with the event Initialized.
	EventKubeconfigTokenIssued = "KubeconfigTokenIssued" //nolint:gosec // The reason of an event.

	// EventKubeconfigTokenReplaced: a token was written to the Secret <cluster>-kubeconfig in the place of one that was of no use before its
	// end. The message says why: the cluster refuses it, or somebody has removed the ServiceAccount or its ClusterRoleBinding, which were made
	// again.
	EventKubeconfigTokenReplaced = "KubeconfigTokenReplaced" //nolint:gosec // The reason of an event.

	// EventInstallerCredentialUsed: the installer's credential was written to the Secret <cluster>-kubeconfig, because the token in it was of
	// no use any more and no other could be had.
	EventInstallerCredentialUsed = "InstallerCredentialUsed"

	// EventClusterImported: an installed cluster was made known to the assisted-service of this management cluster.
	EventClusterImported = "ClusterImported"

	// EventLeftoversDeleted: a ClusterDeployment was deleted, because its control plane does not exist any more.
	EventLeftoversDeleted = "LeftoversDeleted"

	// EventServingCertificateNotApproved: a kubelet in the installed cluster, or something else, asks for a serving certificate that is not
	// its own; the request is left alone.
	EventServingCertificateNotApproved = "ServingCertificateNotApproved"

	// EventProviderIDMismatch, of a Machine of infrastructure other than Metal3: its Node has another provider ID, so Cluster API does not
	// find the Node. A provider ID that a Node has cannot be changed.
	EventProviderIDMismatch = "NodeProviderIDMismatch"

	// EventWorkersFollowed, of a MachineDeployment with the rollout strategy OnDelete: it, or one of its MachineSets, got the version that all
	// of its Nodes run after an upgrade in place. No server was installed anew (DESIGN D33).
	EventWorkersFollowed = "WorkersFollowed"

	// EventInitialized: the cluster is installed and its API answers.
	EventInitialized = "Initialized"
)
