// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"maps"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// transportOf makes a transport whose TCP connections no other transport shares.
func transportOf(config *rest.Config) (http.RoundTripper, error) {
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
	return &withHeaders{RoundTripper: made.Transport, headers: headers}, nil
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
	return tracing.InstalledClusters.RoundTrip(w.RoundTripper, &sent)
}

// WrappedRoundTripper is the transport that has the connections, which are closed by it.
func (w *withHeaders) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }
