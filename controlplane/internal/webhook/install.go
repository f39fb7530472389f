// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

// validateInstall checks addresses and networks against each other; the form of each one is checked by the CRD. replicas is 0 in a
// template, of which only that is refused which is wrong whatever the patches of a ClusterClass add.
func validateInstall(install controlplanev1.InstallSpec, replicas int32, path *field.Path) field.ErrorList {
	if replicas == 0 && install.LoadBalancer.Type == "" {
		install.LoadBalancer.Type = controlplanev1.LoadBalancerUserManaged // A patch may say so.
	}
	errs := validateVIPs(install.APIVIPs, path.Child("apiVIPs"))
	errs = append(errs, validateVIPs(install.IngressVIPs, path.Child("ingressVIPs"))...)
	errs = append(errs, validateVIPPairs(install, path.Child("ingressVIPs"))...)
	errs = append(errs, render.NetworksOf(install, replicas, nil, path).Problems()...)
	errs = append(errs, render.OverrideProblems(install, path.Child("configOverrides"))...)
	if install.LoadBalancer.Type == controlplanev1.LoadBalancerUserManaged {
		return errs // The load balancer's addresses may be anywhere.
	}
	return append(errs, validatePlaces(install, path)...)
}

// validateVIPs checks that two addresses are of two families.
func validateVIPs(vips []string, path *field.Path) field.ErrorList {
	if len(vips) != 2 {
		return nil
	}
	first, second, ok := parsePair(vips[0], vips[1])
	if ok && first.Is4() == second.Is4() {
		return field.ErrorList{
			field.Invalid(path.Index(1), vips[1], "must be of another IP family than the first one: one IPv4 and one IPv6 address"),
		}
	}
	return nil
}

// validateVIPPairs checks that the addresses of API and ingress are of the same families in the same order, and are different ones.
func validateVIPPairs(install controlplanev1.InstallSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range min(len(install.APIVIPs), len(install.IngressVIPs)) {
		api, ingress, ok := parsePair(install.APIVIPs[i], install.IngressVIPs[i])
		switch {
		case !ok: // The CRD refuses what is no address.
		case api.Is4() != ingress.Is4():
			errs = append(errs, field.Invalid(path.Index(i), install.IngressVIPs[i], fmt.Sprintf("must be of the same IP family as apiVIPs[%d]", i)))
		case api == ingress && install.LoadBalancer.Type != controlplanev1.LoadBalancerUserManaged:
			errs = append(errs, field.Invalid(path.Index(i), install.IngressVIPs[i], fmt.Sprintf("must be another address than apiVIPs[%d]", i)))
		}
	}
	return errs
}

func parsePair(a, b string) (first, second netip.Addr, ok bool) {
	first, errFirst := netip.ParseAddr(a)
	second, errSecond := netip.ParseAddr(b)
	return first.Unmap(), second.Unmap(), errFirst == nil && errSecond == nil
}

// validatePlaces checks that virtual addresses are in a machine network, where the hosts announce them.
func validatePlaces(install controlplanev1.InstallSpec, path *field.Path) field.ErrorList {
	var networks []netip.Prefix
	for _, cidr := range install.Networking.MachineNetwork {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil // The CRD refuses what is no CIDR.
		}
		networks = append(networks, network)
	}
	if len(networks) == 0 {
		return nil
	}
	errs := validateInNetworks(install.APIVIPs, networks, path.Child("apiVIPs"))
	return append(errs, validateInNetworks(install.IngressVIPs, networks, path.Child("ingressVIPs"))...)
}

// validateInNetworks checks that every address is in a machine network: the hosts announce it there. One without a network of its IP family
// is left to Networks.Problems, because a template may get that network later.
func validateInNetworks(vips []string, networks []netip.Prefix, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, vip := range vips {
		addr, err := netip.ParseAddr(vip)
		if err != nil {
			continue
		}
		inside, ofFamily := false, false
		names := make([]string, 0, len(networks))
		for _, network := range networks {
			inside = inside || network.Contains(addr.Unmap())
			ofFamily = ofFamily || network.Addr().Is4() == addr.Unmap().Is4()
			names = append(names, network.String())
		}
		if ofFamily && !inside {
			errs = append(errs, field.Invalid(path.Index(i), vip, "must be in networking.machineNetwork: "+strings.Join(names, ", ")))
		}
	}
	return errs
}
