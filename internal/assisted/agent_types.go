// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"github.com/openshift/assisted-service/api/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterReference names a ClusterDeployment.
type ClusterReference struct {
	// Name is the ClusterDeployment's name.
	Name string `json:"name"`
	// Namespace is the ClusterDeployment's namespace.
	Namespace string `json:"namespace"`
}

// AgentSpec holds the fields of an Agent's spec that the providers set (ASSISTED 1.2).
type AgentSpec struct {
	// ClusterDeploymentName binds the Agent to a cluster; nil unbinds it.
	ClusterDeploymentName *ClusterReference `json:"clusterDeploymentName,omitempty"`
	// Role is master, arbiter or worker.
	Role string `json:"role"`
	// Hostname becomes the Node's name.
	Hostname string `json:"hostname,omitempty"`
	// Approved lets the host be installed.
	Approved bool `json:"approved"`
	// NodeLabels are put on the Node.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// MachineConfigPool is the pool whose ignition a day-2 worker gets.
	MachineConfigPool string `json:"machineConfigPool,omitempty"`
	// InstallerArgs are arguments of coreos-installer, as a list in JSON.
	InstallerArgs string `json:"installerArgs,omitempty"`
	// IgnitionConfigOverrides are merged into the ignition of the installed system.
	IgnitionConfigOverrides string `json:"ignitionConfigOverrides,omitempty"`
	// FencingCredentialsSecretRef is the name of a Secret of the Agent's namespace by which the host is powered off.
	FencingCredentialsSecretRef string `json:"fencingCredentialsSecretRef,omitempty"`
	// InstallationDiskID is the ID of the disk to install on; empty leaves the choice to the service.
	InstallationDiskID string `json:"installation_disk_id,omitempty"`
}

// Interface is a network interface of a host's inventory.
type Interface struct {
	// Name is the interface's name.
	Name string `json:"name,omitempty"`
	// MACAddress is its hardware address.
	MACAddress string `json:"macAddress,omitempty"`
	// IPV4Addresses and IPV6Addresses are its addresses with the lengths of their prefixes, for example 192.0.2.21/24.
	IPV4Addresses []string `json:"ipV4Addresses,omitempty"`
	// IPV6Addresses: see IPV4Addresses.
	IPV6Addresses []string `json:"ipV6Addresses,omitempty"`
}

// SystemVendor identifies a host's hardware.
type SystemVendor struct {
	// SerialNumber is the system's serial number, or a placeholder of the vendor's.
	SerialNumber string `json:"serialNumber,omitempty"`
}

// InstallationEligibility says whether a disk may be installed on.
type InstallationEligibility struct {
	// Eligible is whether it may.
	Eligible bool `json:"eligible,omitempty"`
	// NotEligibleReasons are why it may not.
	NotEligibleReasons []string `json:"notEligibleReasons,omitempty"`
}

// Disk is a disk of a host's inventory.
type Disk struct {
	// ID is what an Agent's spec.installation_disk_id takes.
	ID string `json:"id"`
	// Name is the kernel's name, for example sda; Path is its path, for example /dev/sda.
	Name string `json:"name,omitempty"`
	// Path: see Name.
	Path string `json:"path,omitempty"`
	// ByPath and ByID are links to the disk below /dev/disk.
	ByPath string `json:"byPath,omitempty"`
	// ByID: see ByPath.
	ByID string `json:"byID,omitempty"`
	// HCTL is its SCSI address.
	HCTL string `json:"hctl,omitempty"`
	// Model, Vendor, Serial and WWN identify it.
	Model string `json:"model,omitempty"`
	// Vendor: see Model.
	Vendor string `json:"vendor,omitempty"`
	// Serial: see Model.
	Serial string `json:"serial,omitempty"`
	// WWN is its World Wide Name, with the vendor extension if it has one.
	WWN string `json:"wwn,omitempty"`
	// SizeBytes is its size.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// DriveType is DriveTypeHDD or another type.
	DriveType string `json:"driveType,omitempty"`
	// InstallationEligibility says whether it may be installed on; nil when the service does not say.
	InstallationEligibility *InstallationEligibility `json:"installationEligibility,omitempty"`
}

// Inventory is what a host says of itself.
type Inventory struct {
	// Hostname is the name that the host has during discovery.
	Hostname string `json:"hostname,omitempty"`
	// Interfaces are its network interfaces.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Disks are its disks.
	Disks []Disk `json:"disks,omitempty"`
	// CPU is its processor.
	CPU CPU `json:"cpu,omitempty,omitzero"`
	// SystemVendor identifies its hardware.
	SystemVendor SystemVendor `json:"systemVendor,omitempty,omitzero"`
}

// CPU is a host's processor.
type CPU struct {
	// Architecture is that of the system that runs on it, for example x86_64.
	Architecture string `json:"architecture,omitempty"`
}

// Progress is how far a host's installation is.
type Progress struct {
	// CurrentStage is the stage, for example "Writing image to disk".
	CurrentStage string `json:"currentStage,omitempty"`
	// StageStartTime is when that stage began.
	StageStartTime metav1.Time `json:"stageStartTime,omitempty,omitzero"`
}

// DebugInfo is the state of the host in assisted-service's own terms.
type DebugInfo struct {
	// State is one of the AgentState constants, or another one.
	State string `json:"state,omitempty"`
	// StateInfo says more of it.
	StateInfo string `json:"stateInfo,omitempty"`
}

// AgentStatus holds the fields of an Agent's status that the providers read.
type AgentStatus struct {
	// Role is the role that the service has given to the host.
	Role string `json:"role,omitempty"`
	// Inventory is what the host says of itself; empty while it binds (ASSISTED 8.1).
	Inventory Inventory `json:"inventory,omitempty,omitzero"`
	// Progress is how far the host's installation is.
	Progress Progress `json:"progress,omitempty,omitzero"`
	// Conditions are assisted-service's; see the Condition constants.
	Conditions []Condition `json:"conditions,omitempty"`
	// DebugInfo is the state of the host.
	DebugInfo DebugInfo `json:"debugInfo,omitempty,omitzero"`
	// ValidationsInfo are the checks by group.
	ValidationsInfo common.ValidationsStatus `json:"validationsInfo,omitempty"`
}

// Agent is the consumer side of agent-install.openshift.io/v1beta1 Agent: a host that runs the discovery image or was installed from it.
// +kubebuilder:object:root=true
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AgentSpec   `json:"spec,omitempty"`
	Status AgentStatus `json:"status,omitempty,omitzero"`
}

// AgentList is a list of Agent.
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Agent `json:"items"`
}
