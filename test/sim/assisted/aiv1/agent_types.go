// SPDX-License-Identifier: Apache-2.0

package aiv1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Agent is a host that registered.
//
// +kubebuilder:object:root=true
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AgentSpec   `json:"spec,omitempty"`
	Status AgentStatus `json:"status,omitempty"`
}

// AgentList is a list of Agent.
//
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Agent `json:"items"`
}

// AgentSpec is what users ask of a host.
type AgentSpec struct {
	ClusterDeploymentName   *ClusterReference `json:"clusterDeploymentName,omitempty"`
	Role                    string            `json:"role"`
	Hostname                string            `json:"hostname,omitempty"`
	Approved                bool              `json:"approved"`
	InstallationDiskID      string            `json:"installation_disk_id,omitempty"`
	InstallationDiskPath    string            `json:"installation_disk_path,omitempty"`
	MachineConfigPool       string            `json:"machineConfigPool,omitempty"`
	InstallerArgs           string            `json:"installerArgs,omitempty"`
	IgnitionConfigOverrides string            `json:"ignitionConfigOverrides,omitempty"`
	NodeLabels              map[string]string `json:"nodeLabels,omitempty"`
	// FencingCredentialsSecretRef is the name of a Secret of the namespace.
	FencingCredentialsSecretRef string `json:"fencingCredentialsSecretRef,omitempty"`
}

// AgentStatus is written by the service alone.
type AgentStatus struct {
	Bootstrap          bool                          `json:"bootstrap,omitempty"`
	Role               string                        `json:"role,omitempty"`
	Kind               string                        `json:"kind,omitempty"`
	Inventory          Inventory                     `json:"inventory,omitempty"`
	Progress           Progress                      `json:"progress,omitempty"`
	NTPSources         []NTPSource                   `json:"ntpSources,omitempty"`
	Conditions         []Condition                   `json:"conditions,omitempty"`
	DebugInfo          AgentDebugInfo                `json:"debugInfo,omitempty"`
	ValidationsInfo    map[string][]ValidationResult `json:"validationsInfo,omitempty"`
	InstallationDiskID string                        `json:"installation_disk_id,omitempty"`
	CSRStatus          *CSRStatus                    `json:"csrStatus,omitempty"`
	DeprovisionInfo    *DeprovisionInfo              `json:"deprovision_info,omitempty"`
}

// Inventory is the hardware as the host itself reports it.
type Inventory struct {
	Hostname     string       `json:"hostname,omitempty"`
	BMCAddress   string       `json:"bmcAddress,omitempty"`
	CPU          CPU          `json:"cpu,omitempty"`
	Memory       Memory       `json:"memory,omitempty"`
	Interfaces   []Interface  `json:"interfaces,omitempty"`
	Disks        []Disk       `json:"disks,omitempty"`
	SystemVendor SystemVendor `json:"systemVendor,omitempty"`
	ReportTime   *metav1.Time `json:"reportTime,omitempty"`
}

// CPU describes the processors.
type CPU struct {
	Architecture string `json:"architecture,omitempty"`
	Count        int64  `json:"count,omitempty"`
}

// Memory is in bytes.
type Memory struct {
	PhysicalBytes int64 `json:"physicalBytes,omitempty"`
	UsableBytes   int64 `json:"usableBytes,omitempty"`
}

// Interface is one network card. Addresses are in CIDR form.
type Interface struct {
	Name          string   `json:"name,omitempty"`
	MacAddress    string   `json:"macAddress,omitempty"`
	HasCarrier    bool     `json:"hasCarrier,omitempty"`
	Flags         []string `json:"flags"`
	IPV4Addresses []string `json:"ipV4Addresses"`
	IPV6Addresses []string `json:"ipV6Addresses"`
}

// Disk is one drive. SizeBytes is in bytes; ID is what spec.installation_disk_id takes.
type Disk struct {
	ID                      string                   `json:"id"`
	Name                    string                   `json:"name,omitempty"`
	Path                    string                   `json:"path,omitempty"`
	ByID                    string                   `json:"byID,omitempty"`
	ByPath                  string                   `json:"byPath,omitempty"`
	DriveType               string                   `json:"driveType,omitempty"`
	HCTL                    string                   `json:"hctl,omitempty"`
	Model                   string                   `json:"model,omitempty"`
	Serial                  string                   `json:"serial,omitempty"`
	SizeBytes               int64                    `json:"sizeBytes,omitempty"`
	Vendor                  string                   `json:"vendor,omitempty"`
	WWN                     string                   `json:"wwn,omitempty"`
	InstallationEligibility *InstallationEligibility `json:"installationEligibility,omitempty"`
}

// InstallationEligibility says whether a disk may be installed to.
type InstallationEligibility struct {
	Eligible           bool     `json:"eligible,omitempty"`
	NotEligibleReasons []string `json:"notEligibleReasons"`
}

// SystemVendor is the DMI identity. There is no system UUID in an Agent.
type SystemVendor struct {
	Manufacturer string `json:"manufacturer,omitempty"`
	ProductName  string `json:"productName,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	Virtual      bool   `json:"virtual,omitempty"`
}

// Progress is the installation stage of one host; the percentage is of that host alone.
type Progress struct {
	CurrentStage           string       `json:"currentStage,omitempty"`
	ProgressStages         []string     `json:"progressStages,omitempty"`
	ProgressInfo           string       `json:"progressInfo,omitempty"`
	InstallationPercentage int64        `json:"installationPercentage,omitempty"`
	StageStartTime         *metav1.Time `json:"stageStartTime,omitempty"`
	StageUpdateTime        *metav1.Time `json:"stageUpdateTime,omitempty"`
}

// NTPSource is one time server and its state.
type NTPSource struct {
	SourceName  string `json:"sourceName,omitempty"`
	SourceState string `json:"sourceState,omitempty"`
}

// AgentDebugInfo holds the backend's own state name and sentence.
type AgentDebugInfo struct {
	EventsURL string `json:"eventsURL,omitempty"`
	State     string `json:"state,omitempty"`
	StateInfo string `json:"stateInfo,omitempty"`
}

// ValidationResult is one check.
type ValidationResult struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// CSRStatus lists the certificate requests that the service approved for a day-2 node.
type CSRStatus struct {
	ApprovedCSRs        []ApprovedCSR `json:"approvedCSRs,omitempty"`
	LastApprovalAttempt *metav1.Time  `json:"lastApprovalAttempt,omitempty"`
}

// ApprovedCSR is one of them; Type is client or serving.
type ApprovedCSR struct {
	Name       string      `json:"name"`
	Type       string      `json:"type"`
	ApprovedAt metav1.Time `json:"approvedAt"`
}

// DeprovisionInfo remembers the cluster that a host left, until its Node is cleaned up.
type DeprovisionInfo struct {
	ClusterName      string `json:"cluster_name,omitempty"`
	ClusterNamespace string `json:"cluster_namespace,omitempty"`
	NodeName         string `json:"node_name,omitempty"`
	Message          string `json:"message,omitempty"`
}
