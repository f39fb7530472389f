// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// handshakeTimeout bounds one handshake.
const handshakeTimeout = 5 * time.Second

// verify finds the first of the names by which the server's certificate verifies, by handshakes alone: nothing is sent to the server. What
// a proxy is asked for, and who does not verify at all, keep the name that the configuration has.
func verify(ctx context.Context, config *rest.Config, names []string) (Answer, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return Answer{}, errors.New("the server of the kubeconfig is no URL")
	}
	if config.Proxy != nil || config.Insecure || server.Scheme != "https" {
		return Answer{ServerName: cmp.Or(config.ServerName, server.Hostname())}, nil
	}
	trusted, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}})
	if err != nil {
		return Answer{}, errors.New("the kubeconfig has no certificate that can be read")
	}
	if trusted == nil { // The system's certificates.
		trusted = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	var seen []string
	for _, name := range names {
		err := handshake(ctx, server, trusted, name)
		var unverified *tls.CertificateVerificationError
		switch {
		case err == nil:
			return Answer{ServerName: name}, nil
		case errors.As(err, &unverified):
			seen = append(seen, name+" shows "+describe(unverified.UnverifiedCertificates))
		default:
			return Answer{}, err
		}
	}
	return Answer{Seen: strings.Join(seen, "; ")}, nil
}

func handshake(ctx context.Context, server *url.URL, trusted *tls.Config, name string) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	config := trusted.Clone()
	config.ServerName = name
	dialer := &tls.Dialer{Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")))
	if err != nil {
		return err
	}
	return connection.Close()
}

// describe says what a certificate says of itself.
func describe(chain []*x509.Certificate) string {
	if len(chain) == 0 {
		return "no certificate"
	}
	leaf := chain[0]
	return oneLine(
		fmt.Sprintf("a certificate of %q by %q, valid until %s", leaf.Subject, leaf.Issuer, leaf.NotAfter.UTC().Format(time.RFC3339)),
	)
}
