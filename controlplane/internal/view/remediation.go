// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	deprecated "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// Remediation is what the annotations RemediationInProgressAnnotation and RemediationForAnnotation record.
type Remediation struct {
	// Machine is the name of the Machine that is or was unhealthy.
	Machine string `json:"machine"`
	// Timestamp is when its replacement was decided.
	Timestamp metav1.Time `json:"timestamp"`
	// RetryCount is how many replacements for the same Machine have become unhealthy too.
	RetryCount int `json:"retryCount"`
}

// String is the annotation's value.
func (r Remediation) String() string {
	value, err := json.Marshal(r)
	if err != nil {
		return "" // A string, a number and a time can always be encoded.
	}
	return string(value)
}

// RemediationInProgress is the remediation that a control plane records; nil when it records none. One that somebody broke counts as none:
// what it began goes on without it, and only the number of retries is lost.
func RemediationInProgress(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) *Remediation {
	return remediationOf(controlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation])
}

// RemediationFor is the remediation that a Machine was created by; nil when it was created for another reason.
func RemediationFor(m *clusterv1.Machine) *Remediation {
	return remediationOf(m.Annotations[controlplanev1.RemediationForAnnotation])
}

func remediationOf(value string) *Remediation {
	record := &Remediation{}
	if err := json.Unmarshal([]byte(value), record); err != nil || record.Machine == "" {
		return nil
	}
	return record
}

// AsksForRemediation reports whether a Machine waits for its control plane to replace it: a MachineHealthCheck found it unhealthy, and so
// did the remediation of another provider that came first, if there is one. Metal3Remediation says so by the deprecated condition alone.
func AsksForRemediation(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition) && remediationPending(m)
}

// HasRecovered reports whether a Machine that waited for its replacement has become healthy again.
func HasRecovered(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && conditions.IsTrue(m, clusterv1.MachineHealthCheckSucceededCondition) && remediationPending(m)
}

func remediationPending(m *clusterv1.Machine) bool {
	return conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) ||
		deprecated.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
}
