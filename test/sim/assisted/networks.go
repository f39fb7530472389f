// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// network is what the service looks at in an NMStateConfig before it makes an image with it.
type network struct {
	Interfaces []struct {
		Name       string `json:"name"`
		MACAddress string `json:"macAddress"`
	} `json:"interfaces"`
	Config struct {
		Interfaces []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"interfaces"`
	} `json:"config"`
}

// checkNetwork refuses what the service refuses: devices that are named twice, and devices of the document whose address is not given.
func checkNetwork(config *aiv1.NMStateConfig) error {
	var spec network
	if config.Spec == nil || json.Unmarshal(config.Spec.Raw, &spec) != nil {
		return userError("failed to parse the network configuration %s", config.Name)
	}
	known, addresses := sets.New[string](), sets.New[string]()
	for _, device := range spec.Interfaces {
		if known.Has(device.Name) || addresses.Has(device.MACAddress) {
			return userError("MACs and Interfaces for host %s must be unique", config.Name)
		}
		known.Insert(device.Name)
		addresses.Insert(device.MACAddress)
	}
	for _, device := range spec.Config.Interfaces {
		if device.Type == "ethernet" && !known.Has(device.Name) {
			return userError("mac-interface mapping for interface %s is missing", device.Name)
		}
	}
	return nil
}
