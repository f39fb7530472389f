// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// bmcTypes are the schemes of a BMC's address, each of which may be followed by +http or +https. Without a scheme an address is one of
// IPMI.
var bmcTypes = []string{
	"ipmi", "libvirt", "redfish", "redfish-virtualmedia", "redfish-uefihttp", "idrac-redfish", "idrac-virtualmedia",
	"ilo4", "ilo5", "ilo5-redfish", "ilo5-virtualmedia", "irmc",
}

// admitHost is BMO's webhook of BareMetalHosts (M3-93). It gives all its reasons in one message.
func admitHost(req admission.Request) admission.Response {
	host := &bmov1alpha1.BareMetalHost{}
	if err := json.Unmarshal(req.Object.Raw, host); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	errs := hostReasons(host)
	if req.Operation == admissionv1.Update {
		before := &bmov1alpha1.BareMetalHost{}
		if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		errs = append(errs, hostChangeReasons(before, host)...)
	}
	if err := kerrors.NewAggregate(errs); err != nil {
		return admission.Denied(err.Error())
	}
	return admission.Allowed("")
}

// hostReasons is why BMO refuses a host.
func hostReasons(host *bmov1alpha1.BareMetalHost) []error {
	var errs []error
	if address := host.Spec.BMC.Address; address != "" && !slices.Contains(bmcTypes, bmcType(address)) {
		errs = append(errs, fmt.Errorf("Unknown BMC type '%s' for address %s", bmcScheme(address), address))
	}
	image := host.Spec.Image
	if image == nil {
		return errs
	}
	if _, err := url.ParseRequestURI(image.URL); err != nil {
		errs = append(errs, fmt.Errorf("image URL %s is invalid: %w", image.URL, err))
	}
	if _, _, err := image.GetChecksum(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// hostChangeReasons is why BMO refuses a change of a host (M3-68).
func hostChangeReasons(before, after *bmov1alpha1.BareMetalHost) []error {
	var errs []error
	movable := after.Status.Provisioning.State == bmov1alpha1.StateRegistering ||
		after.Status.OperationalStatus == bmov1alpha1.OperationalStatusDetached
	if before.Spec.BMC.Address != "" && before.Spec.BMC.Address != after.Spec.BMC.Address && !movable {
		errs = append(errs, errors.New(
			"BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached",
		))
	}
	if before.Spec.BootMACAddress != "" && !strings.EqualFold(before.Spec.BootMACAddress, after.Spec.BootMACAddress) {
		errs = append(errs, errors.New("bootMACAddress can not be changed once it is set"))
	}
	return errs
}

// bmcType is the scheme of a BMC's address without the protocol that may follow it.
func bmcType(address string) string {
	return strings.TrimSuffix(strings.TrimSuffix(bmcScheme(address), "+http"), "+https")
}

// bmcScheme is that of a BMC's address. An address that is no URL, such as 192.0.2.1:623, is one of IPMI.
func bmcScheme(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme == "" {
		return "ipmi"
	}
	return parsed.Scheme
}
