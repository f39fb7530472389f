// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Life is the stage of a control plane's cluster, from the first host to deletion. It follows from annotations and status of the
// OpenshiftAssistedControlPlane, from the AgentClusterInstall and the ClusterDeployment, and from the cluster ID that the installed cluster
// answers with. The empty value means that LifeOf was not asked yet.
type Life string

const (
	// Deleting: the control plane is being deleted.
	Deleting Life = "Deleting"
	// NotStarted: there is no AgentClusterInstall yet, or it is gone.
	NotStarted Life = "NotStarted"
	// DayOneOpen: hosts are gathered for the first installation.
	DayOneOpen Life = "DayOneOpen"
	// DayOneClosed: the hosts of the first installation are fixed, and it has not begun, or assisted-service does not say so at the moment.
	DayOneClosed Life = "DayOneClosed"
	// Installing: the installation has begun: it is prepared, hosts are written to, or operators are installed.
	Installing Life = "Installing"
	// Failed: the installation failed or was cancelled.
	Failed Life = "Failed"
	// Completed: assisted-service says that the cluster is installed, and the control plane has not recorded it yet.
	Completed Life = "Completed"
	// Running: a cluster was installed and recorded, and assisted-service knows it as its own work.
	Running Life = "Running"
	// Imported: a cluster was installed and recorded, and this management cluster's assisted-service does not know it as its own work, or
	// does not know it any more.
	Imported Life = "Imported"
	// Mismatch: a cluster was installed and recorded, and another one answers through <cluster>-kubeconfig.
	Mismatch Life = "Mismatch"
)

// Installed reports whether a cluster was installed for the control plane, here or where it was moved from. Nothing that installs or takes
// down a cluster may be done any more.
func (l Life) Installed() bool { return l == Running || l == Imported || l == Mismatch }

// LifeOf tells where in its life the cluster is, from all else that the view has of records, install objects and the cluster's answer.
func LifeOf(v *View) Life {
	switch {
	case !v.ControlPlane.DeletionTimestamp.IsZero():
		return Deleting
	case v.mismatch():
		return Mismatch
	case v.installed() && v.InstalledElsewhere():
		return Imported
	case v.installed():
		return Running
	case v.Install.AgentClusterInstall == nil:
		return NotStarted
	}
	switch v.Install.Phase() {
	case assisted.PhaseFailed:
		return Failed
	case assisted.PhaseCompleted:
		return Completed
	case assisted.PhasePreparing, assisted.PhaseInstalling, assisted.PhaseFinalizing:
		return Installing
	case assisted.PhaseWaiting, assisted.PhaseUnknown:
		// It depends on whether the hosts are fixed, see below. After a restart assisted-service may report no phase for a while: an
		// installation that runs counts as DayOneClosed then.
	}
	if v.Install.Closed() {
		return DayOneClosed
	}
	return DayOneOpen
}

// installed reports whether the control plane has a record of an installed cluster or is initialized. The record is needed because
// clusterctl move leaves status behind (CONTRACT CTL-42).
func (v *View) installed() bool { return v.Record != nil || v.Initialized() }

// mismatch reports whether <cluster>-kubeconfig leads to another cluster than the one that was installed.
func (v *View) mismatch() bool {
	return v.Record != nil && v.Workload.ClusterID != "" && v.Workload.ClusterID != v.Record.ClusterID
}

// Verified reports whether the API behind <cluster>-kubeconfig is that of the cluster that was installed.
func (v *View) Verified() bool {
	return v.Record != nil && v.Workload.ClusterID != "" && v.Workload.ClusterID == v.Record.ClusterID
}

// Recognized reports of an initialized cluster whether the one that answers is the recorded one, or none is recorded. It is not while its
// ClusterVersion is not read: the kubeconfig may lead to another cluster, with Machines and Nodes of the same names.
func (v *View) Recognized() bool {
	return v.Record == nil || v.Workload.Version != nil || v.Workload.OtherCluster == "" && v.Verified()
}

// InstalledElsewhere reports of an installed cluster whether this management cluster's assisted-service does not know it as its own work.
// hive, where it runs, marks every ClusterDeployment as installed in the end, but none as one to preserve.
func (v *View) InstalledElsewhere() bool {
	cd := v.Install.ClusterDeployment
	return cd == nil || cd.Spec.Installed && cd.Spec.PreserveOnDelete
}
