// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// Started is what the annotation InstallationStartedAnnotation records.
type Started struct {
	// Attempt is the number of the installation that has begun; see Attempt.
	Attempt string `json:"attempt"`
	// ControlPlane is the UID of the control plane that it was begun for. After a move or a restore it is another one's: there, nothing has
	// begun.
	ControlPlane types.UID `json:"controlPlane"`
	// Workers are the claims of the worker Machines that take part, sorted.
	Workers []string `json:"workers,omitempty"`
}

// StartedNow is the record of a control plane's wanted attempt, given the claims of its workers in any order.
func StartedNow(controlPlane *controlplanev1.OpenshiftAssistedControlPlane, workers []string) Started {
	return Started{Attempt: Attempt(controlPlane), ControlPlane: controlPlane.UID, Workers: slices.Sorted(slices.Values(workers))}
}

// String is the annotation's value.
func (s Started) String() string {
	value, err := json.Marshal(s)
	if err != nil {
		return "" // Strings can always be encoded.
	}
	return string(value)
}

// StartedOf returns the record of a control plane; an empty one when there is none, when it is another control plane's, or when somebody
// broke it: a new attempt, which takes hosts down, is not begun on a guess.
func StartedOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) Started {
	var record Started
	err := json.Unmarshal([]byte(controlPlane.Annotations[controlplanev1.InstallationStartedAnnotation]), &record)
	if err != nil || record.ControlPlane != controlPlane.UID {
		return Started{}
	}
	return record
}
