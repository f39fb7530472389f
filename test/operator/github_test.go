// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	certutil "k8s.io/client-go/util/cert"
)

// downloads is where GitHub serves the files of this project's releases.
const downloads = "/capi-openshift/agent-providers/releases/download/"

// startGitHub serves the files below folder releases/<version> as GitHub serves those of a release, and returns the environment of a
// process that takes it for GitHub: a proxy that leads to no other host, and the certificate to trust.
func startGitHub(t *testing.T, releases string) []string {
	t.Helper()
	g := NewWithT(t)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("github.com", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	g.Expect(err).NotTo(HaveOccurred())
	trusted := filepath.Join(t.TempDir(), "github.pem")
	g.Expect(os.WriteFile(trusted, certificate, 0o600)).To(Succeed())

	mux := http.NewServeMux()
	mux.Handle(downloads, http.StripPrefix(downloads, http.FileServer(http.Dir(releases))))
	site := httptest.NewUnstartedServer(mux)
	site.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	site.StartTLS()
	t.Cleanup(site.Close)
	proxy := httptest.NewServer(tunnel("github.com:443", site.Listener.Addr().String()))
	t.Cleanup(proxy.Close)
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + trusted}
}

// tunnel is a proxy that connects whoever asks for host with address, and nobody with anything else.
func tunnel(host, address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != host {
			http.Error(w, "this proxy leads to "+host+" only", http.StatusForbidden)
			return
		}
		if err := connect(w, r, address); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}
}

// connect passes on all bytes between a client that sent CONNECT and address, until one of them ends.
func connect(w http.ResponseWriter, r *http.Request, address string) error {
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		return err
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return errors.Join(err, server.Close())
	}
	// After Hijack the connection is no longer the HTTP server's, so that nobody gets an error any more: the client sees its connection end.
	defer func() { _ = errors.Join(client.Close(), server.Close()) }()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	return nil
}
