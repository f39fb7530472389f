// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/capi-openshift/agent-providers/internal/tracing"
	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// largestAnswer is how many bytes of an answer are read, counted when they are unpacked: client-go reads an answer as a whole, the server
// may be a tenant's own, and the manager works for all tenants. The largest answers are lists of Nodes, of some 30 KiB each: there is room
// for 2,000.
const largestAnswer = 64 << 20

// transportOf makes a transport whose TCP connections no other transport shares, and which closes those that are unused for so long.
func transportOf(config *rest.Config, unused time.Duration) (http.RoundTripper, error) {
	own := rest.CopyConfig(config)
	if own.Proxy == nil {
		// client-go shares no connection of a configuration with a proxy, and keeps no key of it, which has the certificates once more.
		own.Proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	headers := http.Header{"User-Agent": {own.UserAgent}}
	own.UserAgent = ""
	if own.BearerToken != "" && own.BearerTokenFile == "" {
		headers["Authorization"] = []string{"Bearer " + own.BearerToken}
		own.BearerToken = ""
	}
	made, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client: %w", err)
	}
	slim(made.Transport, unused)
	return &withHeaders{RoundTripper: made.Transport, headers: headers}, nil
}

// slim lets the TCP connections of a transport keep little: no headers that HTTP/2 could refer to instead of sending them again, which are
// some KiB each way. A connection that was not used for the given time is closed. HTTP/2 finds dead connections with pings, and does not
// stop the timer of the next ping when a connection closes: the timer keeps the connection in memory, so it is just as short.
func slim(transport http.RoundTripper, unused time.Duration) {
	for {
		wrapper, ok := transport.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}
		transport = wrapper.WrappedRoundTripper()
	}
	if own, ok := transport.(*http.Transport); ok {
		own.IdleConnTimeout = unused
		// 0 is the default, which is 4 KiB for tables, and 30 s for pings in client-go.
		own.HTTP2 = &http.HTTP2Config{MaxDecoderHeaderTableSize: 1, MaxEncoderHeaderTableSize: 1, SendPingTimeout: unused}
	}
}

// withHeaders adds headers that all requests share. A watch keeps its request as long as it is open: client-go copies the request for each
// header, and the token for each request.
type withHeaders struct {
	http.RoundTripper

	headers http.Header
}

// RoundTrip sends a copy of the request.
func (w *withHeaders) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := *request
	sent.Header = make(http.Header, len(request.Header)+len(w.headers))
	maps.Copy(sent.Header, request.Header)
	maps.Copy(sent.Header, w.headers)
	return tracing.InstalledClusters.RoundTrip(Bounded(w.RoundTripper), &sent)
}

// WrappedRoundTripper is the transport that has the connections, which are closed by it.
func (w *withHeaders) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }

// firstAlone lets one request after the other go until one was answered, and all at once then. Each request that finds no TCP connection
// opens one, although all share the first that is open: the kinds of a cluster are read at the same time, and would cost it, and a proxy on
// the way, a handshake each.
type firstAlone struct {
	http.RoundTripper

	answered atomic.Bool
	turn     chan struct{}
	// patience is how long a request waits for its turn: the first one may have met the only server of several that is dead.
	patience time.Duration
}

// firstPatience is longer than a handshake and a first answer take.
const firstPatience = time.Second

func newFirstAlone(next http.RoundTripper, patience time.Duration) *firstAlone {
	return &firstAlone{RoundTripper: next, turn: make(chan struct{}, 1), patience: patience}
}

// RoundTrip sends a request.
func (f *firstAlone) RoundTrip(request *http.Request) (*http.Response, error) {
	if f.answered.Load() {
		return f.RoundTripper.RoundTrip(request)
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-time.After(f.patience):
	case <-request.Context().Done(): // The transport says so, and closes the body.
	}
	response, err := f.RoundTripper.RoundTrip(request)
	if err == nil {
		f.answered.Store(true)
	}
	return response, err
}

// WrappedRoundTripper is the transport that has the connections, which are closed by it.
func (f *firstAlone) WrappedRoundTripper() http.RoundTripper { return f.RoundTripper }

// Bounded returns a transport by which no more of an answer is read than the largest may have, and which lets only JSON through.
func Bounded(next http.RoundTripper) http.RoundTripper { return bounded{next} }

type bounded struct{ http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		bound(request, response)
	}
	return response, err
}

// WrappedRoundTripper is the transport that has the connections, which are closed by it.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

// bound bounds the body of an answer, unless that is a stream: a watch that the server has accepted, or an exec. Who reads those reads
// piece by piece, and bounds each piece.
func bound(request *http.Request, response *http.Response) {
	switch {
	case response.StatusCode == http.StatusSwitchingProtocols:
	case response.StatusCode == http.StatusOK && request.URL.Query().Get("watch") != "":
	default:
		response.Body = &answer{
			ReadCloser: http.MaxBytesReader(nil, response.Body, largestAnswer), count: limitsOf(request).Counter(), problem: foreign(response),
		}
	}
}

// Limits of what an answer may have besides its bytes: a value of three bytes can take a thousand when it is decoded. A Node has some 900
// values, so that there is room for 2,000 again; of nothing else has a cluster as much. The worst answers within these limits took 630 MiB
// (conditions of Nodes that are null) and 290 MiB (such containers of Pods) while they were decoded; the manager's memory limit is 1 GiB.
var (
	limits        = untrusted.Limits{Values: 250_000, Items: 10_000}
	limitsOfHosts = untrusted.Limits{Values: 2_000_000, Items: 10_000}
)

// limitsOf are the limits of the answer to a request: larger ones for kinds of which there are some for each host.
func limitsOf(request *http.Request) untrusted.Limits {
	switch path.Base(request.URL.Path) {
	case "nodes", "certificatesigningrequests":
		return limitsOfHosts
	default:
		return limits
	}
}

// foreign refuses an answer in one of the encodings that client-go would decode besides JSON. None is asked for, and nobody counts what is
// in them. An answer that is no data, as a proxy's page, is text; one without a type counts as JSON.
func foreign(response *http.Response) error {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && kind != runtime.ContentTypeJSON && !strings.HasPrefix(kind, "text/") {
		return fmt.Errorf("the answer is %s, and JSON was asked for", kind)
	}
	return nil
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser

	count *untrusted.Counter
	// problem is why nothing more is read.
	problem error
}

// Read reads a part of the answer. Its errors name the answer, where those of http.MaxBytesReader name the request.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		err = fmt.Errorf("the answer is too long: no more than %d bytes are read", long.Limit)
	}
	if much := a.count.Count(p[:n]); much != nil && a.problem == nil {
		a.problem = fmt.Errorf("the answer is too large: %w", much)
	}
	if n > 0 && a.problem != nil {
		return 0, a.problem
	}
	return n, err
}
