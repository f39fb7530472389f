// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// The variables of OpenTelemetry that are read here. The SDK and the exporter read all others.
const (
	// EndpointVariable is the address of the collector. Without it there is no tracing.
	EndpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"

	disabledVariable       = "OTEL_SDK_DISABLED"
	exporterVariable       = "OTEL_TRACES_EXPORTER"
	protocolVariable       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolVariable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

const (
	// scope is what the spans are made by.
	scope = "github.com/capi-openshift/agent-providers/internal/tracing"
	// flushTimeout bounds how long a manager that ends waits for its last spans to be sent. Its Pod has 10 s in all.
	flushTimeout = 3 * time.Second
	// reportInterval is how often the log may tell that the collector does not answer.
	reportInterval = time.Minute
)

// Setup returns a context with which passes are traced, and a function that sends the last spans, within 3 s. Without a collector it
// returns the context itself, and a function that does nothing. A setting that cannot be used is no reason for a manager to stand still:
// the log tells of it, and there is no tracing.
func Setup(ctx context.Context, name, version string, log logr.Logger) (context.Context, func()) {
	return setup(ctx, name, version, log, flushTimeout)
}

func setup(ctx context.Context, name, version string, log logr.Logger, patience time.Duration) (context.Context, func()) {
	log = log.WithName("tracing")
	wanted, err := enabled(os.Getenv)
	if !wanted {
		if err != nil {
			log.Error(err, "There is no tracing")
		}
		return ctx, func() {}
	}
	otel.SetLogger(logr.New(quiet{log}))
	otel.SetErrorHandler(reports(log))
	// It connects in the background, and goes on trying.
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		log.Error(errors.New(Redact(err.Error())), "There is no tracing")
		return ctx, func() {}
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about(ctx, name, version)))
	log.Info("Passes are traced")
	return NewContext(ctx, provider), func() {
		// The context of the manager has ended.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			otel.Handle(err)
		}
	}
}

// enabled reports whether the variables ask for tracing; an error says why it cannot be had.
func enabled(variable func(string) string) (bool, error) {
	if variable(EndpointVariable) == "" || strings.EqualFold(variable(disabledVariable), "true") {
		return false, nil
	}
	switch exporter := variable(exporterVariable); exporter {
	case "", "otlp":
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("%s is %q: the managers know otlp and none", exporterVariable, exporter)
	}
	if protocol := cmp.Or(variable(tracesProtocolVariable), variable(protocolVariable), "grpc"); protocol != "grpc" {
		return false, fmt.Errorf("%s is %q: the managers send with grpc alone", protocolVariable, protocol)
	}
	return true, nil
}

// about says who sends the spans. What the variables say goes before.
func about(ctx context.Context, name, version string) *resource.Resource {
	attributes := []attribute.KeyValue{attribute.String("service.name", name), attribute.String("service.version", version)}
	for key, variable := range map[string]string{
		"service.instance.id": "POD_UID", "k8s.namespace.name": "POD_NAMESPACE", "k8s.pod.name": "POD_NAME", "k8s.pod.uid": "POD_UID",
	} {
		if value := os.Getenv(variable); value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	made, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil { // What can be used is there all the same.
		otel.Handle(err)
	}
	return made
}

// reports tells the log of what the SDK cannot do, once a minute: a collector that is away is away for each batch of spans.
func reports(log logr.Logger) otel.ErrorHandler {
	seldom := rate.Sometimes{Interval: reportInterval}
	return otel.ErrorHandlerFunc(func(err error) {
		seldom.Do(func() { log.Error(errors.New(Redact(err.Error())), "Spans are lost") })
	})
}

// quiet is the log of the SDK without the values, some of which are those of headers.
type quiet struct{ log logr.Logger }

var _ logr.LogSink = quiet{}

func (quiet) Init(logr.RuntimeInfo) {}

func (quiet) Enabled(int) bool { return false }

func (quiet) Info(int, string, ...any) {}

func (q quiet) Error(err error, message string, _ ...any) {
	text := "no reason given"
	if err != nil {
		text = Redact(err.Error())
	}
	q.log.Error(errors.New(text), "A setting of OpenTelemetry cannot be used", "step", message)
}

func (q quiet) WithValues(...any) logr.LogSink { return q }

func (q quiet) WithName(string) logr.LogSink { return q }

type key struct{}

// NewContext returns a context with which passes are traced by a provider.
func NewContext(ctx context.Context, provider trace.TracerProvider) context.Context {
	return context.WithValue(ctx, key{}, provider.Tracer(scope))
}
