// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// OpenshiftAssistedControlPlaneSpec is the desired state of the control plane.
// +kubebuilder:validation:XValidation:rule="self.replicas != 1 || !has(self.install.platform) || self.install.platform != 'BareMetal'",message="a single-node control plane (replicas: 1) needs install.platform None or External"
// +kubebuilder:validation:XValidation:rule="self.replicas != 1 || (!has(self.install.apiVIPs) && !has(self.install.ingressVIPs))",message="install.apiVIPs and install.ingressVIPs must not be set for a single-node control plane (replicas: 1)"
// +kubebuilder:validation:XValidation:rule="self.replicas != 1 || !has(self.install.loadBalancer)",message="install.loadBalancer must not be set for a single-node control plane (replicas: 1)"
// +kubebuilder:validation:XValidation:rule="self.replicas == 1 || (has(self.install.platform) && self.install.platform != 'BareMetal') || has(self.install.apiVIPs)",message="install.apiVIPs is required on platform BareMetal"
// +kubebuilder:validation:XValidation:rule="self.replicas == oldSelf.replicas || (self.replicas > 2 && oldSelf.replicas > 2)",message="replicas cannot change from or to 1 or 2: single-node and two-node clusters cannot be extended"
// +kubebuilder:validation:XValidation:rule="(self.replicas == 2) == has(self.install.twoNode)",message="is required with replicas 2, which need an arbiter or fencing, and must not be set with other replicas",fieldPath=".install.twoNode"
// +kubebuilder:validation:XValidation:rule="!has(self.install.twoNode) || self.install.twoNode != 'Arbiter' || !has(self.install.platform) || self.install.platform == 'BareMetal'",message="must be BareMetal for two nodes with an arbiter",fieldPath=".install.platform"
// +kubebuilder:validation:XValidation:rule="!has(self.install.twoNode) || self.install.twoNode != 'Fencing' || !has(self.install.platform) || self.install.platform in ['BareMetal', 'None']",message="must be BareMetal or None for two nodes with fencing",fieldPath=".install.platform"
// +kubebuilder:validation:XValidation:rule="!has(self.install.hyperthreading) || !has(self.install.hyperthreading.arbiter) || (has(self.install.twoNode) && self.install.twoNode == 'Arbiter')",message="must not be set but for two nodes with an arbiter",reason=FieldValueForbidden,fieldPath=".install.hyperthreading.arbiter"
// +kubebuilder:validation:XValidation:rule="!has(self.install.diskEncryption) || !has(self.install.diskEncryption.roles) || !self.install.diskEncryption.roles.exists(r, r == 'Arbiter') || (has(self.install.twoNode) && self.install.twoNode == 'Arbiter')",message="must not have Arbiter but for two nodes with an arbiter",fieldPath=".install.diskEncryption.roles"
// +kubebuilder:validation:XValidation:rule="self.replicas > 2 || !has(self.rollout) || !has(self.rollout.strategy) || !has(self.rollout.strategy.type) || self.rollout.strategy.type != 'RollingUpdate'",message="must not be RollingUpdate with fewer than 3 replicas: the hosts of single-node and two-node clusters cannot be replaced",fieldPath=".rollout.strategy.type"
// +kubebuilder:validation:XValidation:rule="has(self.install.baseDomain)",message="is required for an installation",reason=FieldValueRequired,fieldPath=".install.baseDomain"
// +kubebuilder:validation:XValidation:rule="has(self.install.pullSecretRef)",message="is required for an installation",reason=FieldValueRequired,fieldPath=".install.pullSecretRef"
// +kubebuilder:validation:XValidation:rule="has(self.install.baseDomain) == has(oldSelf.install.baseDomain) && (!has(self.install.baseDomain) || self.install.baseDomain == oldSelf.install.baseDomain)",message="baseDomain is immutable: names and certificates of the cluster are made of it",fieldPath=".install.baseDomain"
// +kubebuilder:validation:XValidation:rule="(has(self.install.platform) ? self.install.platform : self.replicas == 1 ? 'None' : 'BareMetal') == (has(oldSelf.install.platform) ? oldSelf.install.platform : oldSelf.replicas == 1 ? 'None' : 'BareMetal')",message="platform is immutable: the cluster is registered with it",fieldPath=".install.platform"
// +kubebuilder:validation:XValidation:rule="has(self.install.twoNode) == has(oldSelf.install.twoNode) && (!has(self.install.twoNode) || self.install.twoNode == oldSelf.install.twoNode)",message="twoNode is immutable: the cluster is registered with it",fieldPath=".install.twoNode"
// +kubebuilder:validation:XValidation:rule="(has(self.install.external) && has(self.install.external.platformName) ? self.install.external.platformName : 'Unknown') == (has(oldSelf.install.external) && has(oldSelf.install.external.platformName) ? oldSelf.install.external.platformName : 'Unknown') && (has(self.install.external) && has(self.install.external.cloudControllerManager) ? self.install.external.cloudControllerManager : 'None') == (has(oldSelf.install.external) && has(oldSelf.install.external.cloudControllerManager) ? oldSelf.install.external.cloudControllerManager : 'None')",message="external is immutable: the cluster is registered with it",fieldPath=".install.external"
// +kubebuilder:validation:XValidation:rule="has(self.install.pullSecretRef) == has(oldSelf.install.pullSecretRef) && (!has(self.install.pullSecretRef) || self.install.pullSecretRef == oldSelf.install.pullSecretRef)",message="pullSecretRef is immutable: the cluster is registered with it; change the content of the Secret instead",fieldPath=".install.pullSecretRef"
type OpenshiftAssistedControlPlaneSpec struct {
	// replicas is the number of control-plane Machines, 1 to 5: 2 need install.twoNode, and 4 and 5 need release 4.18 or newer. It cannot
	// change from or to 1 or 2. Changeable at any time.
	// +required
	// +kubebuilder:validation:Enum=1;2;3;4;5
	Replicas *int32 `json:"replicas,omitempty"`

	// version is the Kubernetes version of the release, for example v1.33.4 (CONTRACT CP-70). The release itself is distributionVersion.
	// Changeable at any time.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^v[0-9]+\\\\.[0-9]+\\\\.[0-9]+([-+][0-9A-Za-z.+-]+)?$')",message="must be a Kubernetes version such as v1.33.4; the OpenShift release belongs in distributionVersion"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('v1.')",message="must be a Kubernetes version such as v1.33.4; the OpenShift release belongs in distributionVersion"
	Version string `json:"version,omitempty"`

	// distributionVersion is the version of the OpenShift or OKD release, for example 4.20.4. It is fixed until the cluster is
	// installed, or its installation has failed. Of an installed cluster, a newer release upgrades it in place, once spec.version is the
	// Kubernetes version of that release; it may be one minor version ahead, as 5.0 is of 4.22 and of every later 4.y, and never older.
	// Changeable after the installation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?$')",message="must be the version of a release such as 4.20.4, without a leading v"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?$') || int(self.split('.')[0]) > 4 || (int(self.split('.')[0]) == 4 && int(self.split('.')[1]) >= 17)",message="must be 4.17 or newer: older releases set a provider ID of their own on Nodes"
	DistributionVersion string `json:"distributionVersion,omitempty"`

	// release says where the release comes from. Defaults to the public image of distributionVersion. It is fixed as
	// distributionVersion is. An image for several architectures cannot be removed from an installed cluster, because the public one is for
	// one architecture. Changeable after the installation.
	// +optional
	Release ReleaseSpec `json:"release,omitempty,omitzero"`

	// machineTemplate says what the control-plane Machines look like.
	// +required
	MachineTemplate MachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of every control-plane Machine's OpenshiftAssistedConfig. New Machines get it. Where release is
	// not set, cpuArchitecture chooses the public image and is fixed, unless the installation has failed. Changeable at any time.
	// +optional
	OpenshiftAssistedConfigSpec bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty,omitzero"`

	// install is what the Assisted Installer installs.
	// +required
	Install InstallSpec `json:"install,omitempty,omitzero"`

	// remediation says how often Machines are replaced that a MachineHealthCheck finds unhealthy. Changeable at any time.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// rollout says whether and when Machines are replaced that are outdated. Changeable at any time.
	// +optional
	Rollout RolloutSpec `json:"rollout,omitempty,omitzero"`

	// upgrade says what else the version operator of the installed cluster needs to know when distributionVersion changes. Changeable at any
	// time.
	// +optional
	Upgrade UpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// kubeconfig says what the Secret <cluster>-kubeconfig holds. Changeable at any time.
	// +optional
	Kubeconfig KubeconfigSpec `json:"kubeconfig,omitempty,omitzero"`
}

// ReleaseSpec says where the release comes from (DESIGN D10).
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ReleaseSpec struct {
	// imageSetRef names an existing ClusterImageSet. It is used as it is and never deleted. Changeable after the installation.
	// +optional
	ImageSetRef ClusterImageSetReference `json:"imageSetRef,omitempty,omitzero"`

	// image is the release image, by tag or digest, for example quay.io/openshift-release-dev/ocp-release:4.20.4-x86_64.
	// Changeable after the installation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[a-f0-9]{64})$')",message="must be an image with a registry and a tag or sha256 digest"
	Image string `json:"image,omitempty"`
}

// ClusterImageSetReference names a ClusterImageSet.
type ClusterImageSetReference struct {
	// name is the name of the ClusterImageSet.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a ClusterImageSet: lower-case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// MachineTemplate says what the control-plane Machines look like (CONTRACT CP-11).
type MachineTemplate struct {
	// metadata is put on Machines, infrastructure machines and configs, and kept up to date in place. Changeable at any time.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the part of the Machines' spec that the user decides.
	// +required
	Spec MachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// MachineTemplateSpec is the part of the control-plane Machines' spec that the user decides.
type MachineTemplateSpec struct {
	// infrastructureRef names the template of the infrastructure machines, for example a Metal3MachineTemplate. New Machines are made from it.
	// Changeable at any time.
	// +required
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	// readinessGates are conditions of the Machines, set by somebody else, that count for their condition Ready; kept up to date in place
	// (CONTRACT CP-13). Changeable at any time.
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion are the time-outs of a Machine's deletion. Changeable at any time.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are put on the Nodes by Cluster API, and kept up to date in place. Its core refuses them unless it runs with the feature gate
	// MachineTaintPropagation (CONTRACT CP-14). Changeable at any time.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// MachineDeletionSpec are the time-outs of a Machine's deletion (CONTRACT CP-12).
// +kubebuilder:validation:MinProperties=1
type MachineDeletionSpec struct {
	// nodeDrainTimeoutSeconds is how long the Node is drained at most; 0 is without limit. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds is how long volumes are waited for at most; 0 is without limit. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds is how long the Node's deletion is tried at most; 0 is without limit. Defaults to 10.
	// Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// OpenshiftAssistedControlPlaneStatus is the observed state of the control plane (CONTRACT CP-10).
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneStatus struct {
	// conditions are the observations of the control plane's state.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what Cluster API reads to go on with the Cluster.
	// +optional
	Initialization OpenshiftAssistedControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// install is the progress of the installation.
	// +optional
	Install InstallStatus `json:"install,omitempty,omitzero"`

	// distributionVersion is the newest release that the installed cluster has been brought to completely, for example 4.20.4.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DistributionVersion string `json:"distributionVersion,omitempty"`

	// upgrade is the progress of an upgrade of the installed cluster; empty while there is none.
	// +optional
	Upgrade UpgradeStatus `json:"upgrade,omitempty,omitzero"`

	// release is what the release image is, once a registry has told it.
	// +optional
	Release ReleaseStatus `json:"release,omitempty,omitzero"`

	// selector is the label selector of the control-plane Machines, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is the number of control-plane Machines, including those being deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of control-plane Machines whose condition Ready is True.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is the number of control-plane Machines whose condition Available is True.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is the number of control-plane Machines whose condition UpToDate is True.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// etcd counts the members of the installed cluster's etcd, as its operator does.
	// +optional
	Etcd EtcdStatus `json:"etcd,omitempty,omitzero"`

	// versions are the Kubernetes versions that the control-plane Machines run, older ones first (CONTRACT CP-10, CP-71).
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// observedGeneration is the generation of the spec that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// OpenshiftAssistedControlPlaneInitializationStatus is what Cluster API reads to go on with the Cluster (CONTRACT CP-5).
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true once the installation is complete and the API has answered; it never turns false again (DESIGN D11).
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// EtcdStatus counts the members of an installed cluster's etcd, as its operator does. Which ones they are says the condition
// EtcdClusterHealthy.
// +kubebuilder:validation:MinProperties=1
type EtcdStatus struct {
	// members is the number of members, including those whose hosts are gone.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Members *int32 `json:"members,omitempty"`

	// healthyMembers is the number of members that serve.
	// +optional
	// +kubebuilder:validation:Minimum=0
	HealthyMembers *int32 `json:"healthyMembers,omitempty"`
}

// InstallStatus is the progress of the installation.
// +kubebuilder:validation:MinProperties=1
type InstallStatus struct {
	// phase is the phase of the installation: WaitingForHosts, Preparing, Installing, Finalizing, Completed or Failed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Phase string `json:"phase,omitempty"`

	// progressPercentage is how far the installation was when its phase began, as the Assisted Installer counts it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ProgressPercentage *int32 `json:"progressPercentage,omitempty"`

	// attempt is the number of the attempt to install, counted from 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt *int32 `json:"attempt,omitempty"`

	// finalizingTime is when the control-plane hosts of this attempt were first seen to be installed, with only the operators of the cluster
	// missing. If the attempt fails from then on, no other begins by itself: the cluster may be repairable, and may hold data. It is not set
	// any more once the installation is complete.
	// +optional
	FinalizingTime metav1.Time `json:"finalizingTime,omitempty,omitzero"`

	// nextRetryTime is when the next attempt begins by itself; it is not set while none is going to.
	// +optional
	NextRetryTime metav1.Time `json:"nextRetryTime,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlane is the control plane of an OpenShift cluster on bare metal, installed by the Assisted Installer.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=openshiftassistedcontrolplanes,scope=Namespaced,categories=cluster-api,shortName=oacp
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`,description="Cluster that the control plane belongs to"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the API answers and a quorum of Nodes is ready"
// +kubebuilder:printcolumn:name="Install",type=string,JSONPath=`.status.install.phase`,description="Phase of the installation"
// +kubebuilder:printcolumn:name="Progress",type=integer,JSONPath=`.status.install.progressPercentage`,description="Percentage of the installation"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of Machines wanted"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,description="Number of Machines"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of Machines that are ready"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of Machines that are available",priority=10
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.upToDateReplicas`,description="Number of Machines that are up to date",priority=10
// +kubebuilder:printcolumn:name="Etcd",type=integer,JSONPath=`.status.etcd.healthyMembers`,description="Number of members of etcd that serve",priority=10
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Initialized",type=boolean,JSONPath=`.status.initialization.controlPlaneInitialized`,description="Whether the control plane was installed"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the control plane was created"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`,description="Kubernetes version"
// +kubebuilder:printcolumn:name="OpenShift",type=string,JSONPath=`.spec.distributionVersion`,description="OpenShift version"
// +kubebuilder:printcolumn:name="Upgrade",type=string,JSONPath=`.status.conditions[?(@.type=="Upgrading")].reason`,description="How the upgrade to the OpenShift version goes"
type OpenshiftAssistedControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec OpenshiftAssistedControlPlaneSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status OpenshiftAssistedControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions, for Cluster API's condition helpers.
func (c *OpenshiftAssistedControlPlane) GetConditions() []metav1.Condition {
	return c.Status.Conditions
}

// SetConditions replaces the conditions, for Cluster API's condition helpers.
func (c *OpenshiftAssistedControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// OpenshiftAssistedControlPlaneList is a list of OpenshiftAssistedControlPlane.
// +kubebuilder:object:root=true
type OpenshiftAssistedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the control planes.
	// +required
	Items []OpenshiftAssistedControlPlane `json:"items"`
}
