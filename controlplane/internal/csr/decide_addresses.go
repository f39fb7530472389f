// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// checkAddresses checks that the certificate is for names and addresses of the Node only.
func checkAddresses(certificate *x509.CertificateRequest, addresses []corev1.NodeAddress) error {
	for _, name := range certificate.DNSNames {
		if !slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return !isIP(a.Type) && a.Address == name }) {
			return fmt.Errorf("its Node does not have the name %q", name)
		}
	}
	for _, ip := range certificate.IPAddresses {
		if !slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool { return isIP(a.Type) && ip.Equal(net.ParseIP(a.Address)) }) {
			return fmt.Errorf("its Node does not have the address %s", ip)
		}
	}
	return nil
}

func isIP(addressType corev1.NodeAddressType) bool {
	return addressType == corev1.NodeInternalIP || addressType == corev1.NodeExternalIP
}

// checkWitnesses checks that no name or address is one of the cluster's API and Ingress, or of another Machine, whatever the Node says of
// itself. What nobody else has is left to the Node: the infrastructure provider does not know addresses that a host got after its
// inspection.
func (s *scope) checkWitnesses(certificate *x509.CertificateRequest, node string) error {
	asked := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		asked = append(asked, ip.String())
	}
	install := s.controlPlane.Spec.Install
	for _, address := range asked {
		owners := s.known[canonical(address)]
		switch {
		case address == node, slices.Contains(owners, s.machines[node]):
		case len(owners) > 0:
			return fmt.Errorf("%s is an address of Machine %s, not of its Node", address, owners[0])
		case slices.ContainsFunc(slices.Concat(install.APIVIPs, install.IngressVIPs),
			func(vip string) bool { return canonical(vip) == canonical(address) }):
			return fmt.Errorf("%s is an address of the cluster's API or Ingress, not of its Node", address)
		}
	}
	return nil
}

// canonical is one spelling of an address or a name.
func canonical(address string) string {
	if ip := net.ParseIP(address); ip != nil {
		return ip.String()
	}
	return strings.ToLower(address)
}
