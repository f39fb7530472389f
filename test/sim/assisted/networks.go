// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
			Name string   `json:"name"`
			Type string   `json:"type"`
			IPv4 ipConfig `json:"ipv4"`
			IPv6 ipConfig `json:"ipv6"`
		} `json:"interfaces"`
	} `json:"config"`
}

// ipConfig is what a document says of a device and an IP family.
type ipConfig struct {
	Address []struct {
		IP           string `json:"ip"`
		PrefixLength int    `json:"prefix-length"`
	} `json:"address"`
}

// parseNetwork refuses what the service refuses: devices that are named twice, and devices of the document whose address is not given.
func parseNetwork(config *aiv1.NMStateConfig) (network, error) {
	var spec network
	if config.Spec == nil || json.Unmarshal(config.Spec.Raw, &spec) != nil {
		return spec, userError("failed to parse the network configuration %s", config.Name)
	}
	known, addresses := sets.New[string](), sets.New[string]()
	for _, device := range spec.Interfaces {
		if known.Has(device.Name) || addresses.Has(device.MACAddress) {
			return spec, userError("MACs and Interfaces for host %s must be unique", config.Name)
		}
		known.Insert(device.Name)
		addresses.Insert(device.MACAddress)
	}
	for _, device := range spec.Config.Interfaces {
		if device.Type == "ethernet" && !known.Has(device.Name) {
			return spec, userError("mac-interface mapping for interface %s is missing", device.Name)
		}
	}
	return spec, nil
}

// addresses are the static addresses of the device with a hardware address, in CIDR form; nil when the document says nothing of it.
func (n network) addresses(mac string) []string {
	var out []string
	for _, device := range n.Interfaces {
		if !strings.EqualFold(device.MACAddress, mac) {
			continue
		}
		for _, configured := range n.Config.Interfaces {
			if configured.Name != device.Name {
				continue
			}
			for _, address := range slices.Concat(configured.IPv4.Address, configured.IPv6.Address) {
				out = append(out, fmt.Sprintf("%s/%d", address.IP, address.PrefixLength))
			}
		}
	}
	return out
}

// booted is what a machine finds of itself when it has booted the image: its architecture, and the addresses that the image gives to its
// cards.
func (in imageInputs) booted(hw HostHardware) HostHardware {
	hw.Architecture = cmp.Or(hw.Architecture, in.Architecture)
	hw.NICs = slices.Clone(hw.NICs)
	for i := range hw.NICs {
		for _, host := range in.Networks {
			if static := host.addresses(hw.NICs[i].MAC); len(static) > 0 {
				hw.NICs[i].IPs = static
			}
		}
	}
	return hw
}
