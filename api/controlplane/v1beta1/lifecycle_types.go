// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemediationSpec says how often Machines are replaced that a MachineHealthCheck finds unhealthy (DESIGN D26). Which ones are is up to the
// MachineHealthCheck.
// +kubebuilder:validation:MinProperties=1
type RemediationSpec struct {
	// maxRetry is how often the replacement of a Machine is replaced too, when it becomes unhealthy within minHealthyPeriodSeconds. Unset is
	// without limit, 0 is never. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// retryPeriodSeconds is how long after one replacement the next may follow. Unset is 0. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryPeriodSeconds *int32 `json:"retryPeriodSeconds,omitempty"`

	// minHealthyPeriodSeconds is after what time a replacement that becomes unhealthy counts as a Machine of its own, for which counting
	// begins anew. Unset is 14400: the replacement of a host takes 30 to 90 minutes. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}

// RolloutSpec says whether and when Machines of an installed cluster are replaced that are outdated: their host would be another one, or
// installed otherwise, if it were chosen now (DESIGN D27).
// +kubebuilder:validation:MinProperties=1
type RolloutSpec struct {
	// after outdates the Machines that were created before this time, from this time on, under every strategy. Changeable at any time.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`

	// strategy says how outdated Machines are replaced. Changeable at any time.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty,omitzero"`
}

// RolloutStrategy says how outdated Machines are replaced.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || (has(self.type) && self.type == 'RollingUpdate')",message="must not be set but with type RollingUpdate",reason=FieldValueForbidden,fieldPath=".rollingUpdate"
type RolloutStrategy struct {
	// type is OnDelete, the default, or RollingUpdate. OnDelete replaces an outdated Machine when a user deletes it or marks it with the
	// annotation cluster.x-k8s.io/delete-machine; it goes before another takes its place, and one that is up to date stays. RollingUpdate
	// replaces all outdated Machines, one after the other; it needs 3 replicas or more. Changeable at any time.
	// +optional
	Type RolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate is the configuration of type RollingUpdate. Changeable at any time.
	// +optional
	RollingUpdate RollingUpdate `json:"rollingUpdate,omitempty,omitzero"`
}

// RolloutStrategyType is a way to replace outdated Machines.
// +kubebuilder:validation:Enum=OnDelete;RollingUpdate
type RolloutStrategyType string

// The ways to replace outdated Machines.
const (
	OnDeleteRollout      RolloutStrategyType = "OnDelete"
	RollingUpdateRollout RolloutStrategyType = "RollingUpdate"
)

// RollingUpdate says how outdated Machines are replaced one after the other.
// +kubebuilder:validation:MinProperties=1
type RollingUpdate struct {
	// maxSurge is the number of hosts to spare. With 0, the default, a Machine goes before another takes its place: of 3 members of etcd 2 are
	// left for as long as a host is installed, 30 to 90 minutes, and none of them may fail. With 1 the other comes first, for which a
	// BareMetalHost has to be available. Changeable at any time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	MaxSurge *int32 `json:"maxSurge,omitempty"`
}
