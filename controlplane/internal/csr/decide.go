// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// userPrefix is what the user names of kubelets begin with; their group is nodesGroup.
	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
	// authenticatedGroup is the group of everybody whose credentials were checked.
	authenticatedGroup = "system:authenticated"

	// lookAgainInterval is how often a refused request is looked at again, and patience for how long: a kubelet may ask for a certificate for
	// new addresses before its Node has them.
	lookAgainInterval = time.Minute
	patience          = 15 * time.Minute
)

// usages are what a serving certificate may be used for; RSA keys encipher keys besides.
var usages = [][]certificatesv1.KeyUsage{
	{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth},
}

// decision is what a pass does.
type decision struct {
	// approve are the requests to approve.
	approve []approval
	// refuse are the requests that are left alone, with the reasons.
	refuse []refusal
	// lookAgain is when the refused requests are worth another look; 0 is never.
	lookAgain time.Duration
}

// approval is a request that is approved for a Machine.
type approval struct {
	request *certificatesv1.CertificateSigningRequest
	machine string
}

// refusal is a request that is left alone for a reason. It is not denied: an administrator may know better.
type refusal struct {
	request *certificatesv1.CertificateSigningRequest
	reason  string
}

// decide says what becomes of every pending request. It is pure.
func decide(s *scope) decision {
	var d decision
	for i := range s.pending {
		request := &s.pending[i]
		name := nodeName(request)
		machine, ours := s.machines[name]
		node := s.nodes[name]
		if name != "" && (!ours || node == nil) {
			continue // A Node of somebody else, or of a Machine whose nodeRef is not set yet; setting it triggers a pass.
		}
		err := s.check(request, node)
		if err == nil {
			d.approve = append(d.approve, approval{request, machine})
			continue
		}
		d.refuse = append(d.refuse, refusal{request, err.Error()})
		if node != nil && s.now.Sub(request.CreationTimestamp.Time) < patience {
			d.lookAgain = lookAgainInterval
		}
	}
	return d
}

// isPending reports whether a request is for a kubelet's serving certificate and nobody has approved or denied it.
func isPending(request *certificatesv1.CertificateSigningRequest) bool {
	return request.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(request.Status.Conditions) == 0 &&
		len(request.Status.Certificate) == 0
}

// nodeName is the name of the Node that has sent a request; empty when it was sent by something else.
func nodeName(request *certificatesv1.CertificateSigningRequest) string {
	name, isNode := strings.CutPrefix(request.Spec.Username, userPrefix)
	if !isNode {
		return ""
	}
	return name
}

// check says what is wrong with a request; node is the one that has sent it, nil when that was no Node.
func (s *scope) check(request *certificatesv1.CertificateSigningRequest, node *corev1.Node) error {
	if node == nil {
		return fmt.Errorf("%s is no Node", request.Spec.Username)
	}
	for _, group := range []string{nodesGroup, authenticatedGroup} {
		if !slices.Contains(request.Spec.Groups, group) {
			return fmt.Errorf("its sender is not in group %s", group)
		}
	}
	if !slices.ContainsFunc(usages, func(allowed []certificatesv1.KeyUsage) bool { return sameUsages(request.Spec.Usages, allowed) }) {
		return fmt.Errorf("usages %v are not those of a serving certificate", request.Spec.Usages)
	}
	certificate, err := parse(request.Spec.Request)
	if err != nil {
		return err
	}
	if err := checkSubject(certificate, request.Spec.Username); err != nil {
		return err
	}
	if err := checkAddresses(certificate, node.Status.Addresses); err != nil {
		return err
	}
	return s.checkWitnesses(certificate, node.Name)
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

func sameUsages(got, want []certificatesv1.KeyUsage) bool {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(slices.Compact(got), want)
}

// maxRequest is the size of the largest request that is read. Those of kubelets have half a KiB; checking a signature takes the longer, the
// longer the key is.
const maxRequest = 16 << 10

// parse reads the request for a certificate, and checks that its sender has the key.
func parse(data []byte) (*x509.CertificateRequest, error) {
	if len(data) > maxRequest {
		return nil, fmt.Errorf("it has %d bytes: no more than %d are read", len(data), maxRequest)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it does not hold exactly one PEM block of type CERTIFICATE REQUEST")
	}
	certificate, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("it cannot be parsed")
	}
	if certificate.CheckSignature() != nil {
		return nil, errors.New("its signature is wrong")
	}
	return certificate, nil
}

// checkSubject checks that the certificate is for its sender and for nothing but a server.
func checkSubject(certificate *x509.CertificateRequest, user string) error {
	switch {
	case certificate.Subject.CommonName != user:
		return fmt.Errorf("it is for %q, not for its sender", certificate.Subject.CommonName)
	case !slices.Equal(certificate.Subject.Organization, []string{nodesGroup}):
		return fmt.Errorf("its organization is %q, not %s", certificate.Subject.Organization, nodesGroup)
	case len(certificate.EmailAddresses) > 0 || len(certificate.URIs) > 0:
		return errors.New("it asks for e-mail addresses or URIs")
	case len(certificate.DNSNames) == 0 && len(certificate.IPAddresses) == 0:
		return errors.New("it asks for no name and no address")
	default:
		return nil
	}
}

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
