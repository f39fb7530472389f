// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"slices"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenUser is the user of a kubeconfig that holds a token which this provider has requested.
const tokenUser = "cluster-api"

// WithToken is a kubeconfig with a token in the place of its credential.
func WithToken(source []byte, token string) ([]byte, error) {
	k, err := readKubeconfig(source)
	if err != nil {
		return nil, err
	}
	k.context = k.context.DeepCopy()
	k.context.AuthInfo, k.user = tokenUser, &clientcmdapi.AuthInfo{Token: token}
	return k.write()
}

// WithCredentialOf is a kubeconfig with the credential of another one in the place of its own.
func WithCredentialOf(source, other []byte) ([]byte, error) {
	k, err := readKubeconfig(source)
	if err != nil {
		return nil, err
	}
	from, err := readKubeconfig(other)
	if err != nil {
		return nil, err
	}
	k.context = k.context.DeepCopy()
	k.context.AuthInfo, k.user = from.context.AuthInfo, from.user
	return k.write()
}

// TokenOf is the token that a kubeconfig holds because this provider has requested it; empty when it holds another credential.
func TokenOf(source []byte) string {
	k, err := readKubeconfig(source)
	if err != nil || k.context.AuthInfo != tokenUser {
		return ""
	}
	return k.user.Token
}

// Trust is by what a kubeconfig verifies its server: the name in the server's certificate, and the authorities, as PEM.
type Trust struct {
	Name        string
	Authorities []byte
}

// TrustOf is by what a kubeconfig verifies its server; its zero value when that cannot be read.
func TrustOf(source []byte) Trust {
	k, err := readKubeconfig(source)
	if err != nil {
		return Trust{}
	}
	return Trust{Name: cmp.Or(k.cluster.TLSServerName, hostOf(k.cluster.Server)), Authorities: k.cluster.CertificateAuthorityData}
}

// WithTrust is a kubeconfig that verifies its server in another way. One that trusts the system's authorities goes on to do so.
func WithTrust(source []byte, trust Trust) ([]byte, error) {
	k, err := readKubeconfig(source)
	if err != nil {
		return nil, err
	}
	k.cluster.TLSServerName = ""
	if trust.Name != hostOf(k.cluster.Server) {
		k.cluster.TLSServerName = trust.Name
	}
	if len(k.cluster.CertificateAuthorityData) > 0 && len(trust.Authorities) > 0 {
		k.cluster.CertificateAuthorityData = trust.Authorities
	}
	return k.write()
}

func hostOf(server string) string {
	parsed, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// maxAuthorities bounds the certificates that are trusted: an installed cluster has some ten.
const maxAuthorities = 64

// Authorities are the certificates of several bundles, as PEM: each once, in the order of their bytes, without those that have expired. The
// first bundle is returned as it is when no certificate can be read.
func Authorities(now time.Time, bundles ...[]byte) []byte {
	var certificates [][]byte
	for _, bundle := range bundles {
		for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err == nil && now.Before(certificate.NotAfter) {
				certificates = append(certificates, certificate.Raw)
			}
		}
	}
	slices.SortFunc(certificates, bytes.Compare)
	certificates = slices.CompactFunc(certificates, bytes.Equal)
	if len(certificates) == 0 || len(certificates) > maxAuthorities {
		return bundles[0]
	}
	var out bytes.Buffer
	for _, certificate := range certificates {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	}
	return out.Bytes()
}
