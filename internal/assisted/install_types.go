// SPDX-License-Identifier: Apache-2.0

package assisted

import hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"

// NewerInstallSpec holds the fields of an AgentClusterInstall's spec that the control plane provider sets and the Go module of its API does
// not have yet (DESIGN D17).
type NewerInstallSpec struct {
	// NTPSources replace the NTP servers of the hosts' networks.
	NTPSources []string `json:"ntpSources,omitempty"`
	// Arbiter says how arbiters are installed.
	Arbiter *hiveext.AgentMachinePool `json:"arbiter,omitempty"`
}
