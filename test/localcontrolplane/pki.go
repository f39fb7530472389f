// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	certificateLifetime = 365 * 24 * time.Hour
	clockSkew           = time.Hour
)

// authority is a certificate authority whose key never leaves this process.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// keyPair is a certificate with its key, both as PEM.
type keyPair struct {
	certificate []byte
	key         []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the key of certificate authority %s: %w", name, err)
	}
	template := certificateTemplate(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign certificate authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read back certificate authority %s: %w", name, err)
	}
	return &authority{certificate: certificate, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

// serving issues a server certificate for the given DNS names and IP addresses.
func (a *authority) serving(names ...string) (keyPair, error) {
	template := certificateTemplate(pkix.Name{CommonName: names[0]})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	// etcd's gateway connects to etcd itself with the serving certificate, hence client use too.
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	return a.issue(template)
}

// client issues a certificate that Kubernetes takes as the given user in the given groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot make the key of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot sign the certificate of %s: %w", name, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot encode the key of %s: %w", name, err)
	}
	return keyPair{certificate: encodePEM("CERTIFICATE", der), key: keyPEM}, nil
}

// write stores the pair as <name>.crt and <name>.key in dir and returns both paths.
func (p keyPair) write(dir, name string) (certificate, key string, err error) {
	certificate, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := writeFile(certificate, p.certificate); err != nil {
		return "", "", err
	}
	return certificate, key, writeFile(key, p.key)
}

// newSigningKey returns the PEM of a key that an apiserver signs service-account tokens with.
func newSigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the service-account key: %w", err)
	}
	return encodeKey(key)
}

func certificateTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:      subject,
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()),
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(certificateLifetime),
	}
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFile writes a file that only this user can read, in a folder that it makes when missing.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
