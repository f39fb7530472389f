// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// traceparent is the name of the field in which W3C's format has a span.
const traceparent = "traceparent"

// Mark notes the pass of a context on a config that has no such note, and leaves it to the caller to write it. Every later pass of the
// Machine is linked to that pass.
func Mark(ctx context.Context, config metav1.Object) {
	if !trace.SpanContextFromContext(ctx).IsValid() || config.GetAnnotations()[bootstrapv1.TraceAnnotation] != "" {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	annotations := config.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[bootstrapv1.TraceAnnotation] = carrier[traceparent]
	config.SetAnnotations(annotations)
}

// Link links the pass of a context to the one that is noted on a config. What is no note in W3C's format is ignored: everybody who may
// write to the config can have written it.
func Link(ctx context.Context, config metav1.Object) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	note := propagation.MapCarrier{traceparent: config.GetAnnotations()[bootstrapv1.TraceAnnotation]}
	first := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), note))
	if !first.IsValid() {
		return
	}
	span.AddLink(trace.Link{SpanContext: first})
	span.SetAttributes(attribute.String(MachineAttribute, first.TraceID().String()))
}
