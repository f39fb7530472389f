// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"encoding/json"
	"fmt"

	config "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"k8s.io/utils/ptr"
)

const (
	// SentinelFile tells who looks at an installed host that its bootstrap succeeded (CONTRACT BOOT-37).
	SentinelFile = "/run/cluster-api/bootstrap-success.complete"

	// sentinelUnit is the unit that leaves it.
	sentinelUnit = "cluster-api-bootstrap-success.service"
)

// sentinelContents starts with the kubelet, which runs on hosts that were given to their cluster. /run is empty after a reboot, so the unit
// runs at every boot.
const sentinelContents = `[Unit]
Description=Tell Cluster API that the bootstrap of this host succeeded
After=kubelet.service
Requisite=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/mkdir -p /run/cluster-api
ExecStart=/usr/bin/touch ` + SentinelFile + `

[Install]
WantedBy=kubelet.service
`

// Installed is the ignition of an installed system: what the provider adds, and the user's own, which may be nil and wins.
func Installed(own *types.Config) (string, error) {
	merged := types.Config{
		Ignition: types.Ignition{Version: types.MaxVersion.String()},
		Systemd:  types.Systemd{Units: []types.Unit{{Name: sentinelUnit, Enabled: ptr.To(true), Contents: ptr.To(sentinelContents)}}},
	}
	if own != nil {
		merged = config.Merge(merged, *own)
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return "", fmt.Errorf("render the ignition of the installed system: %w", err)
	}
	return string(data), nil
}
