// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

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

// KnownRisks is what the annotation KnownRisksAnnotation records: the risks of one release for one cluster, with the text of each by name.
type KnownRisks struct {
	ClusterID string            `json:"clusterID"`
	Version   string            `json:"version"`
	Risks     map[string]string `json:"risks"`
}

// Releases have a handful of known risks, with short names. A cluster that tells of more, or of longer ones, is a tenant's own, and the
// record is a part of the control plane.
const (
	maxRisks    = 32
	maxRiskName = 256
)

// KnownRisksOf is the record; empty when there is none, or it cannot be read.
func KnownRisksOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) KnownRisks {
	var record KnownRisks
	if err := json.Unmarshal([]byte(controlPlane.Annotations[controlplanev1.KnownRisksAnnotation]), &record); err != nil {
		return KnownRisks{}
	}
	return record
}

// For are the recorded risks of a release for a cluster.
func (k KnownRisks) For(clusterID, version string) map[string]string {
	if k.ClusterID != clusterID || k.Version != version {
		return nil
	}
	return k.Risks
}

// String is the annotation's value.
func (k KnownRisks) String() string {
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(k.Risks)) {
		if len(kept) < maxRisks {
			kept[strings.ToValidUTF8(name[:min(len(name), maxRiskName)], "")] = k.Risks[name]
		}
	}
	k.Risks = kept
	value, err := json.Marshal(k)
	if err != nil {
		return "" // Strings can always be encoded.
	}
	return string(value)
}
