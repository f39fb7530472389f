// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// proxiedHost is a name in the certificate of every httptest.Server. Hosts such as 127.0.0.1 are never asked through a proxy.
const proxiedHost = "example.com"

// proxy is that of the tests' environment.
var proxy connectProxy

// connectProxy connects every client to one address, whichever host the client names.
type connectProxy struct {
	target, asked atomic.Pointer[string]
}

// TestMain names the proxy, because net/http reads the environment once.
func TestMain(m *testing.M) {
	server := httptest.NewServer(&proxy)
	for name, value := range map[string]string{"HTTPS_PROXY": server.URL, "NO_PROXY": ""} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	server.Close()
	os.Exit(code)
}

// ServeHTTP answers CONNECT.
func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := p.target.Load()
	if r.Method != http.MethodConnect || target == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	p.asked.Store(&r.Host)
	upstream, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", *target)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer upstream.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan error, 2)
	go func() { _, err := io.Copy(upstream, buffered); done <- err }()
	go func() { _, err := io.Copy(client, upstream); done <- err }()
	<-done // One side has hung up.
}

// privateCA is the certificate of a CA of nobody's.
func privateCA(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
