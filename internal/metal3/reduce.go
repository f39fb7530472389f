// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// ReduceHost drops what the providers do not read of a BareMetalHost and what makes it large: the inspected hardware but for addresses and
// the serial number. It is for hosts on their way into a cache. What is written of a host is the difference to what was read, so nothing is
// lost.
func ReduceHost(host *bmov1alpha1.BareMetalHost) {
	host.Status.LastUpdated = nil
	hardware := host.Status.HardwareDetails
	if hardware == nil {
		return
	}
	reduced := &bmov1alpha1.HardwareDetails{
		SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: hardware.SystemVendor.SerialNumber},
		NIC:          make([]bmov1alpha1.NIC, 0, len(hardware.NIC)),
	}
	for _, nic := range hardware.NIC {
		reduced.NIC = append(reduced.NIC, bmov1alpha1.NIC{Name: nic.Name, MAC: nic.MAC})
	}
	host.Status.HardwareDetails = reduced
}
