// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// requested is what the annotation RequestedReleaseAnnotation records (DESIGN D28).
type requested struct {
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
}

// RequestedOf is the release that the cluster was seen to be asked for; empty when none is recorded. A record that cannot be read counts as
// none: to ask again for what the user wants does no harm.
func RequestedOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) workload.Release {
	var record requested
	if err := json.Unmarshal([]byte(controlPlane.Annotations[controlplanev1.RequestedReleaseAnnotation]), &record); err != nil {
		return workload.Release{}
	}
	return workload.Release(record)
}

// RequestedText is the annotation's value.
func RequestedText(release workload.Release) string {
	value, err := json.Marshal(requested(release))
	if err != nil {
		return "" // Strings can always be encoded.
	}
	return string(value)
}
