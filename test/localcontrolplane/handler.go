// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// APIHandler is an API of an installed cluster that a handler in this process plays, with certificates as an APIServer has them.
type APIHandler struct {
	name      string
	ca, named *authority
	admin     keyPair
	server    *http.Server
	url       string
}

// ServeAPI serves a handler as the API of an installed cluster, at a port of its own. The names of opts.SANs have a certificate of an
// authority of their own, as those of an APIServer.
func ServeAPI(opts APIServerOptions, handler http.Handler) (*APIHandler, error) {
	h := &APIHandler{name: opts.Name}
	own, public, err := h.certificates(opts)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(localhost, "0"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the API of %s: %w", opts.Name, err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(h.ca.certificate)
	h.url = "https://" + listener.Addr().String()
	h.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), // A client that breaks off says so itself.
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				if slices.Contains(opts.SANs, hello.ServerName) {
					return public, nil
				}
				return own, nil
			},
		},
	}
	go func() { _ = h.server.ServeTLS(listener, "", "") }() // It returns when the server is closed.
	return h, nil
}

// certificates makes the authorities, the administrator's certificate, that of the server's own address and that of its names.
func (h *APIHandler) certificates(opts APIServerOptions) (own, public *tls.Certificate, err error) {
	var ownErr, publicErr, adminErr error
	if h.ca, ownErr = newAuthority("local-" + opts.Name); ownErr != nil {
		return nil, nil, ownErr
	}
	if h.named, publicErr = newAuthority("public-" + opts.Name); publicErr != nil {
		return nil, nil, publicErr
	}
	h.admin, adminErr = h.ca.client(adminUser, adminGroup)
	own, ownErr = h.ca.tls(append([]string{localhost}, opts.SANs...))
	public, publicErr = h.named.tls(append([]string{"localhost"}, opts.SANs...))
	return own, public, errors.Join(ownErr, publicErr, adminErr)
}

// tls issues a server certificate for names and addresses.
func (a *authority) tls(names []string) (*tls.Certificate, error) {
	pair, err := a.serving(names...)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.certificate, pair.key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate of %s: %w", names[0], err)
	}
	return &certificate, nil
}

// URL returns the address of the API.
func (h *APIHandler) URL() string { return h.url }

// Config returns a client configuration of the administrator.
func (h *APIHandler) Config() *rest.Config { return restConfig(h.url, h.ca, h.admin) }

// CA returns the certificates of the authorities that signed the API's certificates, as PEM.
func (h *APIHandler) CA() []byte { return slices.Concat(h.named.pem, h.ca.pem) }

// AdminKubeconfig returns a kubeconfig of the administrator for the given server address.
func (h *APIHandler) AdminKubeconfig(server string) ([]byte, error) {
	return encodeKubeconfig(server, h.name, h.CA(), h.admin)
}

// ClientCA returns the certificate of the authority that signs client certificates, as PEM.
func (h *APIHandler) ClientCA() []byte { return h.ca.pem }

// Certificate returns the certificate that the server shows to a client.
func (h *APIHandler) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return h.server.TLSConfig.GetCertificate(hello)
}

// Stop ends all connections.
func (h *APIHandler) Stop() error { return h.server.Close() }
