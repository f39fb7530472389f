// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// checkAddresses checks that the certificate is for names and addresses of the Node only.
func checkAddresses(certificate *x509.CertificateRequest, addresses []corev1.NodeAddress) error {
	for _, name := range certificate.DNSNames {
		if !slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return !isIP(a.Type) && a.Address == name }) {
			return fmt.Errorf("its Node does not have the name %q", name)
		}
	}
	for _, ip := range certificate.IPAddresses {
		if !hasIP(addresses, ip) {
			return fmt.Errorf("its Node does not have the address %s", ip)
		}
	}
	return nil
}

// hasIP reports whether an address is among those of a Node.
func hasIP(addresses []corev1.NodeAddress, ip net.IP) bool {
	return slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return isIP(a.Type) && ip.Equal(net.ParseIP(a.Address)) })
}

func isIP(addressType corev1.NodeAddressType) bool {
	return addressType == corev1.NodeInternalIP || addressType == corev1.NodeExternalIP
}

// checkWitnesses checks that no name or address is one of the cluster's API and Ingress, or of another Machine, whatever the Node says of
// itself. What nobody else has is left to the Node: no record has the addresses that a host got later, from DHCP, on a bond, or by IPv6's
// own means, all of which may differ between discovery and the installed system.
func (s *scope) checkWitnesses(certificate *x509.CertificateRequest, node string) error {
	asked := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		asked = append(asked, ip.String())
	}
	for _, address := range asked {
		owners := s.known[canonical(address)]
		if address == node {
			continue
		}
		// A host may report the cluster's address at discovery; one with it can only be the host of a cluster that has no other.
		if s.isOfCluster(address) && (ptr.Deref(s.controlPlane.Spec.Replicas, 0) != 1 || !s.confirms(owners, node)) {
			return fmt.Errorf("%s is a name or address of the cluster's API or Ingress, not of its Node", address)
		}
		if s.confirms(owners, node) {
			continue
		}
		if i := slices.IndexFunc(owners, func(o owner) bool { return s.keeps(o, address) }); i >= 0 {
			return fmt.Errorf("%s is an address of Machine %s, not of its Node", address, owners[i].machine)
		}
	}
	return nil
}

// isOfCluster reports whether clients reach the cluster's API or Ingress by a name or an address.
func (s *scope) isOfCluster(address string) bool {
	install, asked := s.controlPlane.Spec.Install, canonical(address)
	api := view.APIName(install, s.cluster)
	domain := strings.TrimPrefix(api, "api")
	return asked == api || asked == "api-int"+domain || strings.HasSuffix(asked, ".apps"+domain) ||
		slices.ContainsFunc(slices.Concat(install.APIVIPs, install.IngressVIPs), func(vip string) bool { return canonical(vip) == asked })
}

// confirms reports whether the Machine of a Node is among the owners of an address.
func (s *scope) confirms(owners []owner, node string) bool {
	return slices.ContainsFunc(owners, func(o owner) bool { return o.machine == s.machines[node] })
}

// keeps reports whether a Machine that is recorded with an address may have it still: one whose Node has others of the same IP family by
// now has given it up. Names stay.
func (s *scope) keeps(o owner, address string) bool {
	ip, node := net.ParseIP(address), s.nodes[o.node]
	if ip == nil || node == nil || hasIP(node.Status.Addresses, ip) {
		return true
	}
	return !slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		other := net.ParseIP(a.Address)
		return isIP(a.Type) && other != nil && (other.To4() == nil) == (ip.To4() == nil)
	})
}

// canonical is one spelling of an address or a name.
func canonical(address string) string {
	if ip := net.ParseIP(address); ip != nil {
		return ip.String()
	}
	return strings.ToLower(address)
}
