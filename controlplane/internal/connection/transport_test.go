// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// TestTransport: requests have the headers of the connection, which share one copy of the token, and the caller's request stays as it was.
// Its TCP connections are closed when they are to be.
func TestTransport(t *testing.T) {
	g := NewWithT(t)
	got, closed := make(chan http.Header, 1), make(chan bool, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- true
		}
	}
	server.Start()
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "secret", UserAgent: "manager"}
	made, err := transportOf(config)
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/json")
	response, err := made.RoundTrip(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(<-got).To(And(
		HaveKeyWithValue("Authorization", []string{"Bearer secret"}), HaveKeyWithValue("User-Agent", []string{"manager"}),
		HaveKeyWithValue("Accept", []string{"application/json"}),
	))
	g.Expect(request.Header).To(Equal(http.Header{"Accept": {"application/json"}}))
	g.Expect(config.BearerToken).To(Equal("secret"), "others make clients of the configuration too")
	utilnet.CloseIdleConnectionsFor(made)
	g.Eventually(closed).Should(Receive())
}
