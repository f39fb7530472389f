// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
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
	made, err := transportOf(config, limit)
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
	<-closed
}

// TestFirstAlone: requests that begin at the same time share a TCP connection, and none waits longer than it wants to.
func TestFirstAlone(t *testing.T) {
	const requests = 8
	g := NewWithT(t)
	var opened atomic.Int32
	held := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	own, err := transportOf(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, limit)
	g.Expect(err).NotTo(HaveOccurred())
	transport := newFirstAlone(own, limit)
	send := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	var all errgroup.Group
	for range requests {
		all.Go(func() error { return send(t.Context()) })
	}
	g.Eventually(opened.Load, limit).Should(BeEquivalentTo(1))
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(send(hurried)).To(MatchError(context.Canceled))
	close(held)
	g.Expect(all.Wait()).To(Succeed())
	g.Expect(opened.Load()).To(BeEquivalentTo(1))
}

// TestFirstThatHangs: the first request has met a server that is dead, and the next one goes on without it.
func TestFirstThatHangs(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	transport := newFirstAlone(roundTripper(func(request *http.Request) (*http.Response, error) {
		if asked.Add(1) == 1 {
			<-request.Context().Done()
		}
		return nil, errors.New("it was sent")
	}), time.Millisecond)
	first, stop := context.WithCancel(t.Context())
	send := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://192.0.2.1", http.NoBody)
		if err != nil {
			return err
		}
		_, err = transport.RoundTrip(request) //nolint:bodyclose // There is no answer.
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- send(first) }()
	g.Eventually(asked.Load, limit).Should(BeEquivalentTo(1))
	g.Expect(send(t.Context())).To(MatchError("it was sent"))
	stop()
	g.Expect(<-ended).To(HaveOccurred())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestTrace: requests of a pass are shown below it, without their headers; others, as those of watches, are not.
func TestTrace(t *testing.T) {
	g, spans, a := NewWithT(t), tracingtest.New(), newAPI(t)
	c := connections(t, a, nil)
	pass := spans.Pass(t)
	_, err := c.Reconcile(pass, ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Watch(pass, key, NewWatcher("configmaps", &corev1.ConfigMap{}, newWoken(), named))).To(Succeed())
	g.Eventually(a.open, limit).Should(Equal(1))
	asked := spans.Named("installed cluster")
	g.Expect(asked).To(HaveLen(1))
	g.Expect(spans.Below(pass, "installed cluster")).To(Equal(asked))
	g.Expect(tracingtest.Value(asked[0], "http.request.method")).To(Equal(http.MethodHead))
	g.Expect(tracingtest.Value(asked[0], "http.response.status_code")).To(Equal("200"))
	g.Expect(fmt.Sprint(asked)).NotTo(ContainSubstring(token))
}

// TestAsking: requests with large answers share a transport, until none was made for a while. Then nothing holds it any more.
func TestAsking(t *testing.T) {
	g := NewWithT(t)
	made := &connection{config: &rest.Config{Host: "https://127.0.0.1:1"}}
	asks := func() any {
		transport, err := made.asksBy()
		g.Expect(err).NotTo(HaveOccurred())
		return transport
	}
	g.Expect(asks()).To(BeIdenticalTo(asks()))
	first := made.asking
	made.drop(first)
	g.Expect(made.asking).To(BeNil())
	g.Expect(made.unused).To(BeNil(), "its timer knows the transport")
	next := asks()
	g.Expect(next).NotTo(BeIdenticalTo(first))
	made.drop(first)
	g.Expect(asks()).To(BeIdenticalTo(next), "a transport that has ended ends no other")
	made.drop(made.asking)
}
