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
	"net/http"
	"net/url"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// handshakeTimeout bounds one handshake.
const handshakeTimeout = 5 * time.Second

// errVerified ends a handshake with a server whose certificate verifies.
var errVerified = errors.New("the certificate verifies")

// verify finds the first of the names by which the server's certificate verifies, by handshakes alone: nothing is sent to the server. Who
// does not verify at all, because the kubeconfig says so (insecure-skip-tls-verify, or http), keeps the name that the configuration has.
func verify(ctx context.Context, config *rest.Config, names []string) (_ Answer, err error) {
	ctx, call := tracing.Begin(ctx, "verify certificate of installed cluster")
	defer func() { call.End(err) }()
	server, err := url.Parse(config.Host)
	if err != nil {
		return Answer{}, errors.New("the server of the kubeconfig is no URL")
	}
	if config.Insecure || server.Scheme != "https" {
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
		err := handshake(ctx, config, trusted, name)
		var unverified *tls.CertificateVerificationError
		switch {
		case errors.Is(err, errVerified):
			return Answer{ServerName: name}, nil
		case errors.As(err, &unverified):
			seen = append(seen, name+" shows "+describe(unverified.UnverifiedCertificates))
		default:
			return Answer{}, err
		}
	}
	return Answer{Seen: strings.Join(seen, "; ")}, nil
}

// handshake shakes hands with the server by the way that requests take, through proxies too, and always fails: with errVerified instead of
// making a request.
func handshake(ctx context.Context, config *rest.Config, trusted *tls.Config, name string) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host, http.NoBody)
	if err != nil {
		return errors.New("the server of the kubeconfig is no URL")
	}
	// A transport goes on to connect when the request has been given up, so that its steps have to end by themselves.
	way := &http.Transport{
		Proxy: proxyOf(config), DialContext: (&net.Dialer{Timeout: handshakeTimeout}).DialContext, TLSHandshakeTimeout: handshakeTimeout,
		TLSClientConfig: trusted.Clone(), DisableKeepAlives: true,
	}
	defer way.CloseIdleConnections()
	way.TLSClientConfig.ServerName = name
	way.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error { return errVerified }
	response, err := way.RoundTrip(request)
	if err == nil {
		return errors.Join(errors.New("the server answers without a handshake"), response.Body.Close())
	}
	var proxied *net.OpError
	if errors.As(err, &proxied) && proxied.Op == "proxyconnect" { // What a proxy shows says nothing of the server.
		return errors.New("connect to the proxy: " + proxied.Err.Error())
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() { // Which of the bounds it was is by chance.
		return fmt.Errorf("connect to %s: no handshake within %s", request.URL.Host, handshakeTimeout)
	}
	return fmt.Errorf("connect to %s: %w", request.URL.Host, err)
}

// proxyOf is by which proxy requests go: that of the kubeconfig, else that of the environment, as client-go does.
func proxyOf(config *rest.Config) func(*http.Request) (*url.URL, error) {
	if config.Proxy != nil {
		return config.Proxy
	}
	return utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
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
