// SPDX-License-Identifier: Apache-2.0

// Package ignition renders bootstrap data: a struct in, bytes out.
package ignition

import (
	"encoding/json"
	"fmt"

	"github.com/coreos/ignition/v2/config/v3_4/types"
)

// Format is the value of the key "format" of a bootstrap data Secret (CONTRACT BOOT-23).
const Format = "ignition"

// LiveISO is the bootstrap data of a host that boots the live ISO. The ISO carries the discovery ignition itself and user data never
// reaches such a host (METAL3 M3-5), so it is the smallest valid config.
func LiveISO() ([]byte, error) {
	data, err := json.Marshal(types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}})
	if err != nil {
		return nil, fmt.Errorf("render ignition: %w", err)
	}
	return data, nil
}
