// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The attributes of calls; all but the first have the names that OpenTelemetry gives them.
const (
	CommandAttribute = "openshift_assisted.command"
	ImageAttribute   = "container.image.name"

	serverAttribute = "server.address"
	methodAttribute = "http.request.method"
	pathAttribute   = "url.path"
	statusAttribute = "http.response.status_code"
)

// Call is the span of a call. The zero value is that of one which is not traced.
type Call struct{ span trace.Span }

// Begin begins a call to a program that is no API server of the management cluster. It is traced when the pass of the context is.
func Begin(ctx context.Context, name string) (context.Context, Call) {
	of := trace.SpanFromContext(ctx)
	if !of.SpanContext().IsSampled() {
		return ctx, Call{}
	}
	ctx, span := of.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, Call{span}
}

// Set sets an attribute. Values must not hold credentials.
func (c Call) Set(name, value string) {
	if c.span != nil {
		c.span.SetAttributes(attribute.String(name, Redact(value)))
	}
}

// SetAll sets an attribute of several values.
func (c Call) SetAll(name string, values []string) {
	if c.span != nil {
		c.span.SetAttributes(attribute.StringSlice(name, values))
	}
}

// End ends a call with what came of it.
func (c Call) End(err error) {
	if c.span == nil {
		return
	}
	if err != nil {
		fail(c.span, err)
	}
	c.span.End()
}

// Origin is the pass that has asked for a call which is made beside it, and maybe after its end. The zero value is no pass.
type Origin struct{ span trace.Span }

// From returns the pass that a context belongs to.
func From(ctx context.Context) Origin { return Origin{trace.SpanFromContext(ctx)} }

// Into returns a context whose calls are shown below the pass.
func (o Origin) Into(ctx context.Context) context.Context {
	if o.span == nil || !o.span.SpanContext().IsSampled() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, o.span)
}

// Servers are programs that are called with HTTP.
type Servers struct {
	name string
	// paths is true when paths of their URLs hold no credentials.
	paths bool
}

var (
	// InstalledClusters are the API servers of installed clusters.
	InstalledClusters = Servers{name: "installed cluster", paths: true}
	// Registries are registries, and what they redirect to.
	Registries = Servers{name: "registry"}
)

// RoundTrip sends a request. Its span ends with the headers of the answer, and has neither headers nor the query of the request.
func (s Servers) RoundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	ctx, call := Begin(request.Context(), s.name)
	if call.span == nil {
		return next.RoundTrip(request)
	}
	call.span.SetAttributes(attribute.String(methodAttribute, request.Method), attribute.String(serverAttribute, request.URL.Hostname()))
	if s.paths {
		call.span.SetAttributes(attribute.String(pathAttribute, request.URL.EscapedPath()))
	}
	response, err := next.RoundTrip(request.WithContext(ctx))
	if err == nil {
		call.span.SetAttributes(attribute.Int(statusAttribute, response.StatusCode))
		if response.StatusCode >= http.StatusBadRequest {
			call.span.SetStatus(codes.Error, http.StatusText(response.StatusCode))
		}
	}
	call.End(err)
	return response, err
}

// Wrap returns a transport whose requests are traced.
func (s Servers) Wrap(next http.RoundTripper) http.RoundTripper {
	return wrapped{servers: s, next: next}
}

type wrapped struct {
	servers Servers
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w wrapped) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.servers.RoundTrip(w.next, request)
}

// WrappedRoundTripper is the transport that has the connections, which are closed by it.
func (w wrapped) WrappedRoundTripper() http.RoundTripper { return w.next }
