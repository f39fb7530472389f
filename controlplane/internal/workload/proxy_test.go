// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// kubeconfigVariable is the kubeconfig with which a process of this test asks, encoded.
const kubeconfigVariable = "TEST_ASK_KUBECONFIG"

// connectProxy is a proxy that leads all requests to one server, and counts them; it refuses all when there is none.
func connectProxy(t *testing.T, server string) (address string, connected *atomic.Int32) {
	t.Helper()
	connected = &atomic.Int32{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || server == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		connected.Add(1)
		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", server)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		here, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func(from *bufio.ReadWriter) {
			_, _ = io.Copy(there, from)
			_ = there.Close()
		}(buffered)
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, connected
}

// behindProxy is the API server's kubeconfig with a name that only the proxy knows.
func behindProxy(t *testing.T, s *apiServer) []byte {
	t.Helper()
	return []byte(strings.Replace(string(s.kubeconfig(t, goodToken)), "server: "+s.URL, "server: https://api.invalid:6443", 1))
}

// TestAskThroughProxyOfTheEnvironment: the names of the certificate are tried, and requests made, by the way that client-go takes. The
// environment is read once in the life of a process, so that another one asks.
func TestAskThroughProxyOfTheEnvironment(t *testing.T) {
	names := []string{publicName, internalName}
	if encoded := os.Getenv(kubeconfigVariable); encoded != "" {
		kubeconfig, err := base64.StdEncoding.DecodeString(encoded)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		fmt.Println(workload.Cached{}.Ask(t.Context(), cluster, kubeconfig, names))
		return
	}
	g, s := NewWithT(t), newAPIServer(t, publicName)
	proxy, connected := connectProxy(t, s.Listener.Addr().String())
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	process.Env = append(os.Environ(), "HTTPS_PROXY="+proxy, "NO_PROXY=",
		kubeconfigVariable+"="+base64.StdEncoding.EncodeToString(behindProxy(t, s)))
	said, err := process.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	g.Expect(string(said)).To(ContainSubstring(fmt.Sprintln(workload.Answer{ServerName: internalName, ClusterID: "3c1d"}, nil)))
	g.Expect(connected.Load()).To(BeEquivalentTo(3), "two handshakes and a request")
}

// TestAskThroughProxyOfTheKubeconfig: a kubeconfig may name a proxy of its own.
func TestAskThroughProxyOfTheKubeconfig(t *testing.T) {
	names := []string{publicName, internalName}
	through := func(t *testing.T, s *apiServer, proxy string) []byte {
		return []byte(strings.Replace(string(behindProxy(t, s)), "server: ", "proxy-url: "+proxy+"\n    server: ", 1))
	}
	t.Run("that leads to the server", func(t *testing.T) {
		g, s := NewWithT(t), newAPIServer(t, publicName)
		proxy, connected := connectProxy(t, s.Listener.Addr().String())
		g.Expect(workload.Cached{}.Ask(t.Context(), cluster, through(t, s, proxy), names)).
			To(Equal(workload.Answer{ServerName: internalName, ClusterID: "3c1d"}))
		g.Expect(connected.Load()).To(BeEquivalentTo(3))
	})
	t.Run("that refuses", func(t *testing.T) {
		g, s := NewWithT(t), newAPIServer(t)
		proxy, _ := connectProxy(t, "")
		_, err := workload.Cached{}.Ask(t.Context(), cluster, through(t, s, proxy), names)
		g.Expect(err).To(MatchError("ask Cluster ns/c: connect to api.invalid:6443: Forbidden"))
	})
	t.Run("that shows a certificate of its own", func(t *testing.T) {
		g, s := NewWithT(t), newAPIServer(t)
		_, err := workload.Cached{}.Ask(t.Context(), cluster, through(t, s, s.URL), names)
		g.Expect(err).To(MatchError(HavePrefix("ask Cluster ns/c: connect to the proxy: ")), "which says nothing of the server's")
		g.Expect(s.requests).To(BeEmpty())
	})
}
