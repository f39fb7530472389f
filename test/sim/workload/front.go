// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// front answers at a cluster's API address in the place of its kube-apiserver, and hands every request on. It exists because the tokens
// of a kube-apiserver live for ten minutes at least: the front grants less than was asked for, as an API server may. It shows the
// certificates of the kube-apiserver, and takes the client certificates that it takes.
type front struct {
	server   APIServer
	lifetime time.Duration
	// asAdmin is how a request with a client certificate goes on, in the name of its owner, and asItself one with a token or without both.
	asAdmin, asItself http.RoundTripper
}

// newFront makes the server for one opening of the API address.
func newFront(server APIServer, lifetime time.Duration) (*http.Server, error) {
	target, err := url.Parse(server.URL())
	if err != nil {
		return nil, fmt.Errorf("the kube-apiserver has a bad address: %w", err)
	}
	f := &front{server: server, lifetime: lifetime}
	config := rest.CopyConfig(server.Config())
	config.NextProtos = []string{"http/1.1"} // Only that can be upgraded, as exec wants it.
	if f.asAdmin, err = rest.TransportFor(config); err != nil {
		return nil, fmt.Errorf("cannot call the kube-apiserver: %w", err)
	}
	if f.asItself, err = rest.TransportFor(rest.AnonymousClientConfig(config)); err != nil {
		return nil, fmt.Errorf("cannot call the kube-apiserver: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(server.ClientCA()) {
		return nil, errors.New("the kube-apiserver has no authority for client certificates")
	}
	silent := log.New(io.Discard, "", 0) // A client that breaks off its request says so itself.
	return &http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { f.rewrite(r, target) }, ModifyResponse: f.shorten, Transport: f,
			FlushInterval: -1, ErrorLog: silent, // A watch is never over.
		},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: server.Certificate, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
		},
		ReadHeaderTimeout: time.Minute, ErrorLog: silent,
	}, nil
}

// rewrite names the owner of a client certificate, which does not come along.
func (f *front) rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.SetURL(target)
	if requestsToken(r.Out) {
		r.Out.Header.Set("Accept", "application/json")
		r.Out.Header.Del("Accept-Encoding")
	}
	if len(r.In.TLS.PeerCertificates) == 0 {
		return
	}
	owner := r.In.TLS.PeerCertificates[0].Subject
	r.Out.Header.Set(transport.ImpersonateUserHeader, owner.CommonName)
	for _, group := range owner.Organization {
		r.Out.Header.Add(transport.ImpersonateGroupHeader, group)
	}
}

// RoundTrip implements http.RoundTripper.
func (f *front) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return f.asAdmin.RoundTrip(r)
	}
	return f.asItself.RoundTrip(r)
}

// requestsToken reports whether a request is for a token of a ServiceAccount.
func requestsToken(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/serviceaccounts/") && strings.HasSuffix(r.URL.Path, "/token")
}

// shorten grants a token that ends earlier than the one that the kube-apiserver has issued.
func (f *front) shorten(response *http.Response) error {
	if !requestsToken(response.Request) || response.StatusCode != http.StatusCreated {
		return nil
	}
	data, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("cannot read a token: %w", err)
	}
	granted := &authenticationv1.TokenRequest{}
	if err := json.Unmarshal(data, granted); err != nil {
		return fmt.Errorf("cannot read a token: %w", err)
	}
	expires := time.Now().Add(f.lifetime).Truncate(time.Second)
	if expires.Before(granted.Status.ExpirationTimestamp.Time) {
		if granted.Status.Token, err = f.server.Shorten(granted.Status.Token, expires); err != nil {
			return err
		}
		granted.Status.ExpirationTimestamp = metav1.NewTime(expires)
	}
	if data, err = json.Marshal(granted); err != nil {
		return fmt.Errorf("cannot write a token: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return nil
}
