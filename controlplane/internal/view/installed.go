// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"

	hivev1 "github.com/openshift/hive/apis/hive/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Installed is what the annotation InstalledClusterAnnotation records (DESIGN D22).
type Installed struct {
	// Attempt is the number of the installation; see Attempt. The record of an earlier attempt says nothing about the wanted one.
	Attempt string `json:"attempt"`
	// ClusterID is the ID of the OpenShift cluster, which its ClusterVersion has too.
	ClusterID string `json:"clusterID"`
	// InfraID is the ID under which the assisted-service that installed the cluster knew it.
	InfraID string `json:"infraID"`
}

// RecordOf is the record for a control plane whose installation has ended with the metadata.
func RecordOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane, metadata hivev1.ClusterMetadata) Installed {
	return Installed{Attempt: Attempt(controlPlane), ClusterID: metadata.ClusterID, InfraID: metadata.InfraID}
}

// String is the annotation's value.
func (i Installed) String() string {
	value, err := json.Marshal(i)
	if err != nil {
		return "" // Strings can always be encoded.
	}
	return string(value)
}

// InstalledOf returns the record of a control plane, and whether a cluster was installed for the wanted attempt. A record that cannot be
// read counts, with an empty ClusterID that no cluster has: somebody broke it, and to install again would destroy the cluster that it told
// of.
func InstalledOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) (record Installed, ok bool) {
	value, ok := controlPlane.Annotations[controlplanev1.InstalledClusterAnnotation]
	if !ok {
		return Installed{}, false
	}
	if err := json.Unmarshal([]byte(value), &record); err != nil {
		return Installed{}, true
	}
	return record, record.Attempt == Attempt(controlPlane)
}

// InstallerKubeconfigName is the name of the Secret by which assisted-service reaches an installed cluster. The service chooses it, and we
// do when it cannot (ASSISTED 1.4).
func InstallerKubeconfigName(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) string {
	return controlPlane.Name + assisted.AdminKubeconfigSuffix
}
