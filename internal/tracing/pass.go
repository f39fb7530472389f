// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The attributes of passes.
const (
	// NamespaceAttribute and NameAttribute are those of the object of a pass.
	NamespaceAttribute = "k8s.namespace.name"
	NameAttribute      = "openshift_assisted.object.name"
	// ResultAttribute is one of the results below.
	ResultAttribute = "openshift_assisted.result"
	// RequeueAttribute is after how many seconds the pass asked for the next one.
	RequeueAttribute = "openshift_assisted.requeue_after_seconds"
	// MachineAttribute is the ID of the trace that the pass of a Machine is linked to.
	MachineAttribute = "openshift_assisted.machine.trace_id"
)

// The results of passes.
const (
	ResultSuccess = "success"
	ResultRequeue = "requeue_after"
	ResultError   = "error"
	ResultPanic   = "panic"
)

// The names of the event of an error and its attributes are OpenTelemetry's own.
const (
	errorEvent       = "exception"
	errorTypeKey     = "exception.type"
	errorMessageKey  = "exception.message"
	errorTypeOfPanic = "panic"
)

// Passes traces the passes of a reconciler, when the context is one of Setup. Otherwise it returns the reconciler itself.
func Passes(ctx context.Context, controller func() string, r reconcile.Reconciler) reconcile.Reconciler {
	tracer, traced := ctx.Value(key{}).(trace.Tracer)
	if !traced {
		return r
	}
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
		ctx, span := tracer.Start(ctx, controller(), trace.WithNewRoot(), trace.WithAttributes(
			attribute.String(NamespaceAttribute, request.Namespace), attribute.String(NameAttribute, request.Name)))
		returned := false
		defer func() {
			if !returned { // The value of a panic is not recorded: nobody has looked at what it holds.
				span.SetAttributes(attribute.String(ResultAttribute, ResultPanic))
				span.SetStatus(codes.Error, errorTypeOfPanic)
			}
			span.End()
		}()
		result, err = r.Reconcile(ctx, request)
		returned = true
		finish(span, result, err)
		return result, err
	})
}

func finish(span trace.Span, result reconcile.Result, err error) {
	came := ResultSuccess
	switch {
	case err != nil:
		came = ResultError
		fail(span, err)
	case result.RequeueAfter > 0:
		came = ResultRequeue
		span.SetAttributes(attribute.Float64(RequeueAttribute, result.RequeueAfter.Seconds()))
	}
	span.SetAttributes(attribute.String(ResultAttribute, came))
}

// Fail notes an error on the pass that a context belongs to. Errors that a pass returns are noted without it.
func Fail(ctx context.Context, err error) {
	if span := trace.SpanFromContext(ctx); err != nil && span.IsRecording() {
		fail(span, err)
	}
}

func fail(span trace.Span, err error) {
	text := Redact(err.Error())
	span.SetStatus(codes.Error, text)
	span.AddEvent(errorEvent, trace.WithAttributes(
		attribute.String(errorTypeKey, fmt.Sprintf("%T", err)), attribute.String(errorMessageKey, text)))
}
