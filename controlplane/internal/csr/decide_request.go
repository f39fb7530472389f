// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// nodesGroup is the group of kubelets, and the organization of their certificates.
	nodesGroup = "system:nodes"
	// authenticatedGroup is the group of everybody whose credentials were checked.
	authenticatedGroup = "system:authenticated"
)

// usages are what a serving certificate may be used for; RSA keys encipher keys besides.
var usages = [][]certificatesv1.KeyUsage{
	{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth},
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
