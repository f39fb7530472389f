// SPDX-License-Identifier: Apache-2.0

// Package chaos kills managers at exact points. A manager under test reaches the API server through a Proxy, which knows of every write
// when the API server has carried it out and the manager has not heard of it: the worst moment to die.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const headerTimeout = 10 * time.Second

// ignoredResources are written by every manager all the time and hold no state of ours.
var ignoredResources = sets.New("leases", "tokenreviews", "subjectaccessreviews", "events")

var writeVerbs = sets.New("create", "update", "patch", "delete")

// Write is a request of the manager that the API server has carried out.
type Write struct {
	// Verb is create, update, patch or delete.
	Verb string
	// Resource is the plural name of the kind, with the subresource if there is one, such as machines/status.
	Resource string
	// Name of the object; empty for a create.
	Name string
}

// String is "<verb> <resource>", the same for every object.
func (w Write) String() string { return w.Verb + " " + w.Resource }

// watchDelay is how late the events of slow watches are: longer than a manager's next pass takes to begin.
const watchDelay = 2 * time.Second

// Proxy stands between a manager and the API server and has the manager's identity.
type Proxy struct {
	server *http.Server
	url    string
	info   request.RequestInfoFactory
	// slow are the resources whose watch events come late.
	slow sets.Set[string]

	mu      sync.Mutex
	onWrite func(write Write, dying bool) bool
	cut     bool
	// released is closed when watch events go on; nil while they come.
	released chan struct{}
}

// NewProxy starts a proxy on loopback. config is the manager's; slow are resources whose watch events are to come late. onWrite is called,
// one write at a time, when a write was carried out; if it returns true the manager never hears of it, nor of anything else until Mend: its
// connections are cut. dying says that they are cut already: writes that were on their way are carried out, and not heard of either.
func NewProxy(config *rest.Config, slow []string, onWrite func(write Write, dying bool) bool) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parse the API server's address: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	p := &Proxy{
		url: "http://" + listener.Addr().String(), slow: sets.New(slow...), onWrite: onWrite,
		info: request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.In.Method != http.MethodGet {
				// A write that is on its way when its manager dies is carried out, and has to be seen here.
				r.Out = r.Out.WithContext(context.WithoutCancel(r.In.Context()))
			}
		},
		Transport:      transport,
		FlushInterval:  -1, // Watches are streams.
		ModifyResponse: p.observe,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if p.isCut() {
				panic(http.ErrAbortHandler)
			}
			reverse.ServeHTTP(w, r)
		})}
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("chaos proxy: %v", err))
		}
	}()
	return p, nil
}

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() error {
	p.Release()
	return p.server.Close()
}

// WriteKubeconfig writes a kubeconfig that leads to the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["chaos"] = &clientcmdapi.Cluster{Server: p.url}
	config.Contexts["chaos"] = &clientcmdapi.Context{Cluster: "chaos"}
	config.CurrentContext = "chaos"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	return os.WriteFile(path, data, 0o600)
}

// errCut ends a response that the manager must not see.
var errCut = errors.New("cut")

// observe reports a write that was carried out, and slows watches down.
func (p *Proxy) observe(response *http.Response) error {
	info, err := p.info.NewRequestInfo(response.Request)
	if err != nil || !info.IsResourceRequest || response.StatusCode >= http.StatusBadRequest {
		return nil // What the proxy does not understand is none of its business.
	}
	if info.Verb == "watch" {
		body := lateBody{ReadCloser: response.Body, release: p.awaitRelease}
		if p.slow.Has(info.Resource) {
			body.delay = watchDelay
		}
		response.Body = body
	}
	write, ok := writeOf(info)
	if !ok || response.Request.URL.Query().Has("dryRun") {
		return nil // A dry run writes nothing.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = p.onWrite(write, p.cut) || p.cut
	if p.cut {
		return errCut
	}
	return nil
}

func (p *Proxy) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// Mend lets requests through again, for the manager's next life.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Hold keeps the events of all watches back until Release: the manager's cache stays as it is, and its reads past the cache do not.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released == nil {
		p.released = make(chan struct{})
	}
}

// Release hands on the events that Hold has kept back, and those that follow.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released != nil {
		close(p.released)
		p.released = nil
	}
}

// awaitRelease returns when events are not kept back.
func (p *Proxy) awaitRelease() {
	p.mu.Lock()
	released := p.released
	p.mu.Unlock()
	if released != nil {
		<-released
	}
}

// writeOf tells which write a request is; ok is false for reads and what is ignored.
func writeOf(info *request.RequestInfo) (write Write, ok bool) {
	if ignoredResources.Has(info.Resource) || !writeVerbs.Has(info.Verb) {
		return Write{}, false
	}
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	return Write{Verb: info.Verb, Resource: resource, Name: info.Name}, true
}

// lateBody hands on what it reads after a delay, and when events are not kept back.
type lateBody struct {
	io.ReadCloser
	delay   time.Duration
	release func()
}

func (l lateBody) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.delay > 0 {
		<-time.After(l.delay)
	}
	l.release()
	return n, err
}
