// SPDX-License-Identifier: Apache-2.0

// Package tracingtest has traced passes for tests.
package tracingtest

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// Recorder keeps the spans of a test that have ended.
type Recorder struct {
	exporter *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

// New returns a recorder without spans.
func New() *Recorder {
	exporter := tracetest.NewInMemoryExporter()
	return &Recorder{exporter: exporter, provider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))}
}

// Context is one with which passes are traced.
func (r *Recorder) Context(ctx context.Context) context.Context {
	return tracing.NewContext(ctx, r.provider)
}

// Pass begins a pass, whose span is not among those that are kept.
func (r *Recorder) Pass(t *testing.T) context.Context {
	t.Helper()
	ctx, _ := r.provider.Tracer("test").Start(t.Context(), t.Name())
	return ctx
}

// Named are the spans of a name, in the order in which they ended.
func (r *Recorder) Named(name string) tracetest.SpanStubs {
	var found tracetest.SpanStubs
	for _, span := range r.exporter.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// Below are those of a name that are children of a context's span.
func (r *Recorder) Below(ctx context.Context, name string) tracetest.SpanStubs {
	var found tracetest.SpanStubs
	for _, span := range r.Named(name) {
		if of := trace.SpanContextFromContext(ctx); span.Parent.SpanID() == of.SpanID() && span.Parent.TraceID() == of.TraceID() {
			found = append(found, span)
		}
	}
	return found
}

// Value is an attribute of a span as text; empty when the span has none of the name.
func Value(span tracetest.SpanStub, name string) string {
	for _, attribute := range span.Attributes {
		if string(attribute.Key) == name {
			return attribute.Value.String()
		}
	}
	return ""
}
