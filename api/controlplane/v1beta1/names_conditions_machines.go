// SPDX-License-Identifier: Apache-2.0

package v1beta1

// EtcdClusterHealthyCondition sums up the ClusterOperator etcd of the installed cluster (CONTRACT CP-82).
const (
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// EtcdClusterHealthyReason: every member of etcd is healthy.
	EtcdClusterHealthyReason = "Healthy"

	// EtcdClusterNotHealthyReason: etcd is not available or degraded; the message says why.
	EtcdClusterNotHealthyReason = "NotHealthy"

	// EtcdClusterHealthUnknownReason: the ClusterOperator does not exist or has not reported yet.
	EtcdClusterHealthUnknownReason = "HealthUnknown"

	// EtcdClusterInspectionFailedReason: the cluster is not initialized yet, its ClusterOperators cannot be read, or another cluster answers
	// than the one that was installed.
	EtcdClusterInspectionFailedReason = "InspectionFailed"

	// EtcdClusterConnectionDownReason: the API has not answered for longer than the grace period.
	EtcdClusterConnectionDownReason = "ConnectionDown"
)

// ControlPlaneComponentsHealthyCondition sums up the ClusterOperators kube-apiserver, kube-controller-manager and kube-scheduler of the
// installed cluster (CONTRACT CP-82).
const (
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// ControlPlaneComponentsHealthyReason: every component is healthy.
	ControlPlaneComponentsHealthyReason = "Healthy"

	// ControlPlaneComponentsNotHealthyReason: a component is not available or degraded; the message says which and why.
	ControlPlaneComponentsNotHealthyReason = "NotHealthy"

	// ControlPlaneComponentsHealthUnknownReason: a ClusterOperator does not exist or has not reported yet.
	ControlPlaneComponentsHealthUnknownReason = "HealthUnknown"

	// ControlPlaneComponentsInspectionFailedReason: the cluster is not initialized yet, its ClusterOperators cannot be read, or another
	// cluster answers than the one that was installed.
	ControlPlaneComponentsInspectionFailedReason = "InspectionFailed"

	// ControlPlaneComponentsConnectionDownReason: the API has not answered for longer than the grace period.
	ControlPlaneComponentsConnectionDownReason = "ConnectionDown"
)

// MachinesReadyCondition aggregates the Ready conditions of the control-plane Machines (CONTRACT CP-82).
const (
	MachinesReadyCondition = "MachinesReady"

	// MachinesReadyReason: every Machine is ready.
	MachinesReadyReason = "Ready"

	// MachinesNotReadyReason: a Machine is not ready; the message says which and why.
	MachinesNotReadyReason = "NotReady"

	// MachinesReadyUnknownReason: it is not known of a Machine whether it is ready.
	MachinesReadyUnknownReason = "ReadyUnknown"

	// MachinesReadyNoReplicasReason: there are no control-plane Machines.
	MachinesReadyNoReplicasReason = "NoReplicas"

	// MachinesReadyInternalErrorReason: the conditions of the Machines cannot be aggregated; the message says why.
	MachinesReadyInternalErrorReason = "InternalError"
)

// MachinesUpToDateCondition aggregates the UpToDate conditions of the control-plane Machines (CONTRACT CP-82).
const (
	MachinesUpToDateCondition = "MachinesUpToDate"

	// MachinesUpToDateReason: every Machine is what the control plane asks for.
	MachinesUpToDateReason = "UpToDate"

	// MachinesNotUpToDateReason: a Machine differs from what the control plane asks for; the message says which and how.
	MachinesNotUpToDateReason = "NotUpToDate"

	// MachinesUpToDateUnknownReason: it is not known of a Machine whether it is up to date.
	MachinesUpToDateUnknownReason = "UpToDateUnknown"

	// MachinesUpToDateNoReplicasReason: there are no control-plane Machines that were checked.
	MachinesUpToDateNoReplicasReason = "NoReplicas"

	// MachinesUpToDateInternalErrorReason: the conditions of the Machines cannot be aggregated; the message says why.
	MachinesUpToDateInternalErrorReason = "InternalError"
)

// RollingOutCondition is True while Machines are not up to date (CONTRACT CP-81, DESIGN D27).
const (
	RollingOutCondition = "RollingOut"

	// RollingOutReason: at least one Machine is not up to date; the message says which, and whether anything is done about it.
	RollingOutReason = "RollingOut"

	// NotRollingOutReason: every Machine is up to date.
	NotRollingOutReason = "NotRollingOut"
)

// ScalingUpCondition is True while there are fewer Machines than replicas (CONTRACT CP-81).
const (
	ScalingUpCondition = "ScalingUp"

	// ScalingUpReason: there are fewer Machines than replicas.
	ScalingUpReason = "ScalingUp"

	// NotScalingUpReason: there are enough Machines.
	NotScalingUpReason = "NotScalingUp"
)

// ScalingDownCondition is True while there are more Machines than replicas (CONTRACT CP-81).
const (
	ScalingDownCondition = "ScalingDown"

	// ScalingDownReason: there are more Machines than replicas.
	ScalingDownReason = "ScalingDown"

	// NotScalingDownReason: there are not too many Machines.
	NotScalingDownReason = "NotScalingDown"
)

// RemediatingCondition is True while a Machine that a MachineHealthCheck found unhealthy is replaced (CONTRACT CP-82, DESIGN D26).
const (
	RemediatingCondition = "Remediating"

	// RemediatingReason: a Machine is being replaced; the message names it, and the other unhealthy ones.
	RemediatingReason = "Remediating"

	// NotRemediatingReason: no Machine is being replaced; the message names those that are unhealthy, and says why they stay.
	NotRemediatingReason = "NotRemediating"
)

// These are reasons of the condition OwnerRemediated of a Machine that a MachineHealthCheck found unhealthy; they are those of Cluster
// API's own control plane provider (DESIGN D26).
const (
	// MachineRemediationDeletingReason: the Machine is being deleted, and another takes its place.
	MachineRemediationDeletingReason = "MachineDeleting"

	// MachineRemediationDeferredReason: the Machine is replaced later; the message says what has to happen first.
	MachineRemediationDeferredReason = "RemediationDeferred"

	// MachineCannotBeRemediatedReason: the Machine is not replaced until somebody acts; the message says why.
	MachineCannotBeRemediatedReason = "CannotBeRemediated"
)

// DeletingCondition is True while the control plane is being deleted (CONTRACT CP-62, DESIGN D12).
const (
	DeletingCondition = "Deleting"

	// NotDeletingReason: the control plane is not being deleted.
	NotDeletingReason = "NotDeleting"

	// WaitingForWorkersDeletionReason: worker Machines exist.
	WaitingForWorkersDeletionReason = "WaitingForWorkersDeletion"

	// WaitingForMachineDeletionReason: control-plane Machines exist.
	WaitingForMachineDeletionReason = "WaitingForMachineDeletion"

	// WaitingForOrphaningReason: the control plane was deleted with --cascade=orphan, and garbage collection has not taken all its objects
	// from it yet.
	WaitingForOrphaningReason = "WaitingForOrphaning"

	// WaitingForOrphanedMachinesReason: control-plane Machines that were orphaned on purpose exist, and their hosts are bound to the
	// ClusterDeployment, which stays until these Machines are deleted.
	WaitingForOrphanedMachinesReason = "WaitingForOrphanedMachines"

	// WaitingForInstallDeletionReason: the ClusterDeployment, the AgentClusterInstall or the ClusterImageSet exists.
	WaitingForInstallDeletionReason = "WaitingForInstallDeletion"

	// DeletionCompletedReason: nothing is left.
	DeletionCompletedReason = "DeletionCompleted"
)

// MachineEtcdMemberHealthyCondition tells on a control-plane Machine of an installed cluster how the member of etcd on its host is, as the
// operator of etcd reports it. Its type and reasons are those of Cluster API's own control plane provider. It can be a readiness gate.
const (
	MachineEtcdMemberHealthyCondition = "EtcdMemberHealthy"

	// MachineEtcdMemberHealthyReason: the operator says nothing against the member.
	MachineEtcdMemberHealthyReason = "Healthy"

	// MachineEtcdMemberNotHealthyReason: the member does not serve, or has not started; the message has the operator's words.
	MachineEtcdMemberNotHealthyReason = "NotHealthy"

	// MachineEtcdMemberInspectionFailedReason: the operator does not run etcd on the Machine's Node, or not yet.
	MachineEtcdMemberInspectionFailedReason = "InspectionFailed"
)

// Reasons of the condition UpToDate that the control plane provider sets on its Machines (CONTRACT CP-45).
const (
	// MachineUpToDateReason: the Machine is what the control plane asks for.
	MachineUpToDateReason = "UpToDate"

	// MachineNotUpToDateReason: the Machine differs from what the control plane asks for; the message lists how.
	MachineNotUpToDateReason = "NotUpToDate"

	// MachineUpdatingReason: nothing but its version differs: its Node is upgraded in place with the cluster, and then the Machine's version
	// follows.
	MachineUpdatingReason = "Updating"

	// MachineUpToDateUnknownReason: the manager may not read the infrastructure machine; the message names the role that is missing.
	MachineUpToDateUnknownReason = "UpToDateUnknown"
)
